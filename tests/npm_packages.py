"""Installs the npm packages that a folder of the tests pins."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".pytest_cache"


def program(name: str) -> str:
    """The path of ``node`` or ``npm``; a test that needs it fails where it is missing."""
    found = shutil.which(name)
    assert found, f"{name} is not installed: this test needs Node 20 and npm"
    return found


@cache
def installed(source: Path) -> Path:
    """A copy of the folder with its packages, made by whoever comes first; the others wait."""
    files = sorted(one for one in source.iterdir() if one.is_file())
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()[:16]
    folder = CACHE / f"{source.name}-{digest}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{source.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            # Under another name until it is complete: an interrupted installation is none.
            with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{source.name}-new-") as name:
                work = Path(name) / "packages"
                work.mkdir()
                for file in files:
                    shutil.copy(file, work)
                run = subprocess.run(
                    [program("npm"), "ci", "--ignore-scripts"],
                    cwd=work,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, run.stdout + run.stderr
                work.rename(folder)
    return folder
