"""A real Apache AGE from npm, as a direct child of the tests."""

from __future__ import annotations

import atexit
import subprocess
from pathlib import Path

from tests.npm_packages import installed, program

SOURCE = Path(__file__).with_name("pglite")


class AgeServer:
    """One server in memory, on a free port of loopback; ``bare`` leaves the extension out."""

    def __init__(self, *, bare: bool = False) -> None:
        command = [program("node"), "server.mjs", *(["bare"] if bare else [])]
        self._process = subprocess.Popen(
            command,
            cwd=installed(SOURCE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        atexit.register(self.stop)
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line.isdecimal():
            self._process.kill()
            raise AssertionError(f"AGE does not start: {line}\n{self._process.stdout.read()}")
        self.url = f"postgresql://postgres@127.0.0.1:{line}/postgres?sslmode=disable"

    def stop(self) -> None:
        """End it; it holds nothing that is kept."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
