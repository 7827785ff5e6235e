"""A real Postgres from the wheel, as a direct child of the tests."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from holdfast.engines.postgres.binaries import initialise, program, system_user
from holdfast.testing.server_processes import end_at_exit

PASSWORD = "only-for-tests"  # noqa: S105 - it guards a server on loopback for minutes


class PostgresServer:
    """One server in a temporary folder; a socket for 18, TCP with a password for 16.

    It is removed with the folder, also where the folder is given. ::

        server = PostgresServer(18, "-c", "max_wal_size=64MB")
    """

    def __init__(self, major: int, *options: str, folder: Path | None = None) -> None:
        self.major = major
        self.options = options
        self.folder = folder or Path(tempfile.mkdtemp(prefix="hf-pg-"))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.create()
        self.user = system_user(self.data)
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        end_at_exit(self, signal.SIGQUIT)

    def create(self) -> None:
        """Make the data folder."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        initialise(self.data, major=self.major, password_file=secret)

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        command = [
            str(program("postgres", major=self.major)),
            *("-D", str(self.data), "-k", str(self.folder), "-p", str(self.port)),
            *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"),
            *("-c", "log_min_messages=warning"),
            *self.options,
        ]
        limit = time.monotonic() + 60
        ready = [str(program("pg_isready", major=self.major)), "-h", str(self.folder), "-p"]
        self._launch(command)
        while subprocess.run([*ready, str(self.port)], capture_output=True, check=False).returncode:
            assert time.monotonic() < limit, "postgres does not answer"
            time.sleep(0.05)
            if self.process is not None and self.process.poll() is not None:
                # After a kill the orphans of the last server take a moment to notice.
                said = (self.folder / "log").read_text()[self._said :]
                assert "still in use" in said, said
                self._launch(command)

    def _launch(self, command: list[str]) -> None:
        with (self.folder / "log").open("ab") as log:
            self._said = log.tell()
            self.process = subprocess.Popen(
                command, user=self.user, cwd="/", stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        """As the power would: every process of it at once, without a word."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        """As an operator would."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        """Stop at once, for nobody starts it again, and leave nothing behind."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, *, user: str = "postgres", database: str = "postgres", tcp: bool = False) -> str:
        """How to connect, by socket or by TCP."""
        who = f"{user}:{PASSWORD}"
        if tcp:
            return f"postgresql://{who}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{who}@/{database}?host={self.folder}&port={self.port}"


_PORTS = range(12_000, 32_000)
"""Below the ports that the system gives to outgoing connections: none of these takes it first."""


def free_port(host: str = "127.0.0.1") -> int:
    """A port of loopback that nobody listens on, for a server that cannot be given a socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in random.SystemRandom().sample(_PORTS, 100):
        with socket.socket(family) as probe, suppress(OSError):
            probe.bind((host, port))
            return port
    raise RuntimeError(f"no port of {host} is free from {_PORTS.start} to {_PORTS.stop}")
