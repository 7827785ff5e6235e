"""kill -9 in the middle of an export, an import and a copy: resumed, exact, nothing doubled."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.archive_scenes import fill
from tests.archives.test_archives import exported, files, opened, store_of
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
STEPS = (1, 7, 30, 60, 75)
"""Of about 90: in the first kind, in blobs, between tasks and their events, near the end."""


async def run(work: str, url: str, folder: str | Path, step: int = 0, *seal: str) -> int:
    """Run a process that kills itself at a step. Returns how it ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.archives.killed", work, url, str(folder), str(step), *seal)
    )
    return await process.wait()


async def test_an_export_that_was_killed_continues_and_is_exact(tmp_path: Path) -> None:
    async with empty_database() as url, holdfast.open(url, tenant="acme") as state:
        await fill(store_of(state))
        for step in STEPS:
            assert await run("export", url, tmp_path / "a", step) == -signal.SIGKILL
            async with opened("memory") as other:
                with pytest.raises(holdfast.HoldfastError, match=r"not complete|not an archive"):
                    await other.ops.archives.load(tmp_path / "a")
        assert await run("export", url, tmp_path / "a") == 0
        assert await run("export", url, tmp_path / "b") == 0
        assert files(tmp_path / "a") == files(tmp_path / "b")
        async with opened("memory") as other:
            await other.ops.archives.load(tmp_path / "a")


async def test_an_import_that_was_killed_continues_and_is_exact(tmp_path: Path) -> None:
    folder = await exported(tmp_path / "a")
    async with empty_database() as url:
        # Its first 27 steps or so only check the archive, and the last 80 only compare.
        for step in (1, 28, 29, 33, 41, 52, 70, 90):
            assert await run("import", url, folder, step) == -signal.SIGKILL
        assert await run("import", url, folder) == 0
        async with holdfast.open(url, tenant="acme") as state:
            await state.ops.archives.export(tmp_path / "b")
        assert files(folder) == files(tmp_path / "b")
        assert await run("import", url, folder) == 0  # once more: it is there already


async def test_a_copy_that_was_killed_is_repeated_and_is_exact(tmp_path: Path) -> None:
    async with empty_database() as url, empty_database() as target:
        async with holdfast.open(url, tenant="acme") as state:
            await fill(store_of(state))
            await state.ops.archives.export(tmp_path / "a")
        for step in (1, 10, 20, 30, 60):
            assert await run("copy", url, target, step) == -signal.SIGKILL
        assert await run("copy", url, target) == 0
        async with holdfast.open(target, tenant="acme") as other:
            await other.ops.archives.export(tmp_path / "b")
        assert files(tmp_path / "a") == files(tmp_path / "b")
