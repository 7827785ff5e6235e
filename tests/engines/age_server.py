"""A real Apache AGE from npm, as a direct child of the tests."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("pglite")
CACHE = Path(__file__).parents[2] / ".pytest_cache"
FILES = ("package.json", "package-lock.json", ".npmrc", "server.mjs")


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is not installed: the tests of Apache AGE need Node 20 and npm"
    return found


@cache
def installed() -> Path:
    """The folder with the packages, installed by whoever comes first; the others wait for it."""
    texts = [(SOURCE / name).read_bytes() for name in FILES]
    folder = CACHE / f"pglite-{hashlib.sha256(b''.join(texts)).hexdigest()[:16]}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "pglite.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            # Under another name until it is complete: an interrupted installation is none.
            with tempfile.TemporaryDirectory(dir=CACHE, prefix="pglite-new-") as name:
                work = Path(name) / "packages"
                work.mkdir()
                for file in FILES:
                    shutil.copy(SOURCE / file, work)
                run = subprocess.run(
                    [_program("npm"), "ci", "--ignore-scripts"],
                    cwd=work,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, run.stdout + run.stderr
                work.rename(folder)
    return folder


class AgeServer:
    """One server in memory, on a free port of loopback; ``bare`` leaves the extension out."""

    def __init__(self, *, bare: bool = False) -> None:
        command = [_program("node"), "server.mjs", *(["bare"] if bare else [])]
        self._process = subprocess.Popen(
            command,
            cwd=installed(),
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
