"""A Valkey whose power can be cut: afterwards its files are as long as they were when synced."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing.valkey_server import ValkeyServer

COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCE = Path(__file__).with_name("fsync_log.c")


@dataclass(frozen=True, slots=True)
class Cut:
    """What the power took along."""

    lost_bytes: int
    synced_at: float
    """When the sync before the last began, by the clock of ``time.monotonic``.

    What was answered before that is on disk: while a sync is asked for and not done, the server
    answers before it writes, and the next sync has it.
    """


class MainsServer:
    """A Valkey that logs each fsync; its log is never rewritten, so no inode is used again."""

    def __init__(self, folder: Path, *, fsync: str) -> None:
        self._log = folder / "syncs"
        shim = folder / "fsync_log.so"
        if COMPILER is None:
            raise RuntimeError("there is no C compiler")
        command = [COMPILER, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(shim)]
        subprocess.run([*command, str(SOURCE), "-ldl"], check=True)
        self.valkey = ValkeyServer(
            *("--auto-aof-rewrite-percentage", "0"),
            fsync=fsync,
            environment={"LD_PRELOAD": str(shim), "FSYNC_LOG": str(self._log)},
        )

    def start(self) -> None:
        """Start, and make sure that the shim is at work."""
        self.valkey.start()
        assert self._log.stat().st_size > 0, "no sync was logged: is the server linked statically?"

    @property
    def syncs(self) -> int:
        """How often the log of appended commands was synced."""
        return len(self._synced_at())

    def cut(self) -> Cut:
        """SIGKILL, and everything that was not synced is gone."""
        self.valkey.kill()
        synced_at = self._synced_at()[-2] / 1e9
        lengths = {inode: length for inode, length, _ in self._lines()}
        lost = 0
        for path in self._folder.iterdir():
            about = path.stat()
            kept = min(about.st_size, lengths.get(about.st_ino, 0))
            lost += about.st_size - kept
            os.truncate(path, kept)
        return Cut(lost, synced_at)

    @property
    def _folder(self) -> Path:
        return self.valkey.folder / "appendonlydir"

    def _lines(self) -> list[tuple[int, int, int]]:
        whole = self._log.read_text().split("\n")[:-1]
        return [(int(inode), int(length), int(at)) for inode, length, at in map(str.split, whole)]

    def _synced_at(self) -> list[int]:
        """When each sync of the log of appended commands began."""
        logs = {path.stat().st_ino for path in self._folder.glob("*.incr.aof")}
        return [at for inode, length, at in self._lines() if inode in logs and length]
