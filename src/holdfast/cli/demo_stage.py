"""The processes of ``holdfast demo``: a Postgres in a folder, a service, workers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from holdfast.values.errors import UnavailableError

AGENT = "holdfast.cli.demo_agent:app"
STARTED_WITHIN_SECONDS = 60.0
STOPPED_WITHIN_SECONDS = 15.0
_NAMES = ("STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL")

Part = Literal["service", "worker", "agents"]


class Stage:
    """The demo's folder, and the processes that use it.

    ::

        with Stage("", port=8000) as stage:
            stage.start("service")
    """

    def __init__(self, folder: str, *, port: int, pace_seconds: float = 0.3) -> None:
        self._stack = ExitStack()
        self._given = folder
        self._pace_seconds = pace_seconds
        self._processes: dict[Part, subprocess.Popen[bytes]] = {}
        self.port = port
        self.folder = Path(folder)
        self.killed: list[str] = []
        self.started: Counter[str] = Counter()

    def __enter__(self) -> Self:
        if self._given:
            self.folder = Path(self._given).expanduser().resolve()
            self.folder.mkdir(parents=True, exist_ok=True)
        else:
            self.folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
            # Started by root, Postgres runs as another user, who must be able to enter the folder.
            self.folder.chmod(0o755)
            self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._stack.callback(self.stop)
        self.journal.unlink(missing_ok=True)
        self.journal.touch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def journal(self) -> Path:
        """The journal file, to which each step of the agent appends a line."""
        return self.folder / "journal"

    @property
    def state(self) -> Path:
        """The folder of embedded Postgres."""
        return self.folder / "state"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the processes: this folder as the only storage."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in _NAMES and not name.startswith("HOLDFAST_")
        }
        return kept | {
            "STORAGE_TYPE": "embedded",
            "HOLDFAST_DIR": str(self.state),
            "DEMO_JOURNAL": str(self.journal),
            "DEMO_PACE_SECONDS": str(self._pace_seconds),
        }

    def start(self, part: Part) -> None:
        """Start the service or a worker; its output goes to a file in the folder."""
        self.started[part] += 1
        with self.log(part).open("ab") as log:
            self._processes[part] = subprocess.Popen(  # noqa: S603 - our own command
                self.command(*_ARGUMENTS[part], *self._more(part)),
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A new session: Ctrl-C reaches only the demo, which then stops them in order.
                start_new_session=True,
            )

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of this installation's ``holdfast`` with these arguments."""
        return [sys.executable, "-m", "holdfast.cli", *arguments]

    def log(self, part: Part) -> Path:
        """Return the path of the file with a process's output."""
        return self.folder / f"{part}.log"

    def check(self) -> None:
        """Raise ``UnavailableError`` if a process has ended unexpectedly."""
        for part, process in self._processes.items():
            if process.poll() is not None:
                raise UnavailableError(
                    part, f"ended with {process.returncode}: {self.log(part).read_text()[-800:]}"
                )

    def kill(self, part: Part) -> int:
        """Kill a process with SIGKILL. Returns its pid."""
        process = self._processes.pop(part)
        process.kill()
        process.wait()
        self.killed.append(part)
        return process.pid

    def kill_postgres(self) -> int:
        """Kill the folder's Postgres server with SIGKILL. Returns its pid."""
        pid = int((self.state / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        self.killed.append("postgres")
        return pid

    def stop(self) -> None:
        """Send SIGTERM to all processes, and SIGKILL to those that do not exit in time."""
        for process in self._processes.values():
            process.terminate()
        limit = time.monotonic() + STOPPED_WITHIN_SECONDS
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(limit - time.monotonic(), 0.1))
            process.kill()
            process.wait()
        self._processes = {}

    def noted(self) -> list[str]:
        """Return the journal lines that the agent's steps wrote, of all processes, in order."""
        lines = self.journal.read_text().splitlines()
        return [line.split(" ", 1)[1] for line in lines if " " in line]

    def _more(self, part: Part) -> tuple[str, ...]:
        return ("--port", str(self.port)) if part == "service" else ()


_ARGUMENTS: dict[Part, tuple[str, ...]] = {
    "agents": ("worker", "holdfast.studio.demo_agents:app", "--log-json", "--grace-seconds", "1"),
    "service": ("serve", AGENT, "--no-worker", "--host", "127.0.0.1"),
    "worker": (
        *("worker", AGENT, "--log-json", "--grace-seconds", "1"),
        *("--lease-seconds", "2", "--recovery-seconds", "0.3", "--poll-seconds", "0.2"),
    ),
}
