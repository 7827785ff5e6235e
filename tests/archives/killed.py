"""Runs an export, an import or a copy, and kills itself with SIGKILL at one of its steps."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import holdfast
from holdfast import Settings
from holdfast.wiring import archive_runs


async def main(work: str, url: str, folder: str, step: int, seal: str = "") -> None:
    """Do the work; die at the step with this number. ``seal`` names a file of keys."""
    left = step

    def reply(_: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    archive_runs.BATCH_RECORDS = 2
    settings = Settings(seal=seal)
    async with holdfast.open(url, tenant="acme", background=False, settings=settings) as state:
        storage: Any = state.ops.archives._storage()
        load = storage.load

        async def load_and_count(kind: str, records: Any) -> None:
            await load(kind, records)
            reply(None)  # loaded, and not yet recorded as loaded

        storage.load = load_and_count
        keys = state.ops.archives._keys()
        how: dict[str, Any] = {"tenant": "acme", "keys": keys, "progress": reply}
        if work == "export":
            await archive_runs.export_archive(storage, Path(folder), segment_bytes=300, **how)
        elif work == "import":
            await archive_runs.import_archive(storage, Path(folder), **how)
        else:
            async with holdfast.open(
                folder, tenant="acme", background=False, settings=settings
            ) as other:
                await state.ops.archives.copy_to(other, progress=reply)


if __name__ == "__main__":
    work, url, folder, step, *seal = sys.argv[1:]
    asyncio.run(main(work, url, folder, int(step), "".join(seal)))
