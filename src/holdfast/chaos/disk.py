"""A small disk that can be made full: a tmpfs, if this process may mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_SIZE_BYTES = 1 << 30
_SLACK_BYTES = 64 << 10
"""Extra space for writes that happen between measuring the used space and shrinking the disk."""

_MOUNT, _UMOUNT = shutil.which("mount"), shutil.which("umount")


class SmallDisk:
    """A file system in memory whose size can change while it is in use.

    ::

        disk = SmallDisk.mount()
        disk.fill()
        disk.free()
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def mount(cls) -> SmallDisk | None:
        """Mount a disk in a temporary folder; ``None`` if this process may not mount one."""
        folder = Path(tempfile.mkdtemp(prefix="hf-disk-"))
        if _MOUNT is not None and _UMOUNT is not None and os.geteuid() == 0:
            command = [_MOUNT, "-t", "tmpfs", "-o", f"size={_SIZE_BYTES},mode=0755", "tmpfs"]
            made = subprocess.run([*command, str(folder)], capture_output=True, check=False)
            if made.returncode == 0:
                return cls(folder)
        folder.rmdir()
        return None

    def fill(self) -> None:
        """Make the disk full: shrink it to the size of its content."""
        for slack in (0, 1, 4, 16, 64):
            about = os.statvfs(self.folder)
            used = (about.f_blocks - about.f_bfree) * about.f_frsize
            if self._resize(used + slack * _SLACK_BYTES):
                return
        raise OSError(f"cannot shrink {str(self.folder)!r}: files in it grow too fast")

    def free(self) -> None:
        """Enlarge the disk again."""
        if not self._resize(_SIZE_BYTES):
            raise OSError(f"cannot enlarge {str(self.folder)!r} again")

    def unmount(self) -> None:
        """Unmount the disk and delete its folder."""
        if self.folder.exists():
            if self.folder.is_mount():
                # A lazy unmount: a process of a killed server may take a moment to end.
                subprocess.run([str(_UMOUNT), "-l", str(self.folder)], check=True)
            self.folder.rmdir()

    def _resize(self, size_bytes: int) -> bool:
        command = [str(_MOUNT), "-o", f"remount,size={size_bytes}", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
