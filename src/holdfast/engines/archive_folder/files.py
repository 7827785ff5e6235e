"""Writes files atomically: a file is complete, or does not exist."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, sync it, and then rename it.

    ::

        write_whole(Path("a/manifest.json"), b"{}")
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    name_whole(draft, path)


def name_whole(draft: Path, path: Path) -> None:
    """Rename a synced file so that the new name survives a power cut."""
    draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
