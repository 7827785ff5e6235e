"""Where the servers of tests keep their data."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - a file system, not a file
_ROOM_BYTES = 6 << 30


def server_folder(prefix: str) -> Path:
    """A new folder, in memory where there is room: for tests that no loss of power is part of.

    The servers sync all the same, but no test waits for a disk. ::

        server = PostgresServer(18, folder=server_folder("hf-pg-"))
    """
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if roomy else None))
