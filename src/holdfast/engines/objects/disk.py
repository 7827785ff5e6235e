"""What the driver lacks for a folder: fsync, and the removal of incomplete files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

_STAGED = re.compile(r"#\d+$")
"""Temporary names that the driver writes to and does not list; a killed process leaves one."""


class Disk:
    """One folder. With ``fsync`` a write survives a power cut, but waits for the disk.

    ::

        await disk.settle(["acme/bytes/3f/3f09-4.0"])
    """

    def __init__(self, root: Path, *, fsync: bool) -> None:
        self.root = root
        self.fsync = fsync

    async def settle(self, paths: Iterable[str]) -> None:
        """Sync written or deleted files, and their folders, to the disk."""
        if self.fsync:
            await asyncio.to_thread(self._settle, list(paths))

    def _settle(self, paths: list[str]) -> None:
        folders: dict[Path, None] = {}
        for name in paths:
            path = self.root / name
            _sync(path)
            for folder in path.parents:
                folders[folder] = None
                if folder == self.root:
                    break
        for folder in folders:
            _sync(folder)

    async def remove_staged(self, folder: str, *, before: datetime) -> int:
        """Delete incomplete files that were last written ``before`` a time. Returns how many."""
        return await asyncio.to_thread(self._remove_staged, self.root / folder, before)

    def _remove_staged(self, folder: Path, before: datetime) -> int:
        removed = 0
        for inside, _, names in os.walk(folder, onerror=_unless_gone):
            for path in (Path(inside, name) for name in names if _STAGED.search(name)):
                try:
                    if datetime.fromtimestamp(path.stat().st_mtime, UTC) <= before:
                        path.unlink()
                        removed += 1
                except FileNotFoundError:
                    # Renamed to its final name, or deleted by another sweep.
                    continue
        return removed


def _unless_gone(error: OSError) -> None:
    """Ignore a missing folder: the deletion of its last object deletes the folder too."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync(path: Path) -> None:
    try:
        opened = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        # Deleted meanwhile: nothing to sync.
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
