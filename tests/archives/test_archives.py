"""Archives: from every engine to every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engines.archive_folder.writer import ArchiveWriter
from holdfast.testing.archive_scenes import fill
from holdfast.values.clock import SystemClock
from holdfast.values.errors import ConflictError, InvalidInputError, NotSupportedError
from holdfast.wiring.state import State
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ENGINES = ("memory", "postgres")


@asynccontextmanager
async def opened(engine: str, tenant: str = "acme") -> AsyncIterator[State]:
    """An empty state on an engine."""
    if engine == "memory":
        async with holdfast.open("memory:", tenant=tenant) as state:
            yield state
        return
    async with empty_database() as url, holdfast.open(url, tenant=tenant) as state:
        yield state


def store_of(state: State) -> Callable[..., Any]:
    """The stores of a state by the names that the scenes use."""

    def store(contract: str, **how: Any) -> Any:
        return state.channel(how["name"]) if contract == "channels" else getattr(state, contract)

    return store


async def exported(folder: Path) -> Path:
    """The archive of a tenant with a little of everything."""
    async with opened("memory") as state:
        await fill(store_of(state))
        await state.ops.archives.export(folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of all files but the manifest and the lock."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", ".lock")
    }


def _times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.jsonl")}


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("source", ENGINES)
async def test_an_archive_is_the_same_after_it_was_loaded_elsewhere(
    source: str, target: str, tmp_path: Path
) -> None:
    async with opened(source) as state, opened(target) as other:
        await fill(store_of(state))
        before = await state.ops.archives.export(tmp_path / "a")
        await other.ops.archives.load(tmp_path / "a")
        after = await other.ops.archives.export(tmp_path / "b")
        assert before.kinds == after.kinds
        assert before.blobs == after.blobs == 3
        assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("source", ENGINES)
async def test_a_copy_holds_the_same(source: str, target: str, tmp_path: Path) -> None:
    async with opened(source) as state, opened(target) as other:
        await fill(store_of(state))
        copied = await state.ops.archives.copy_to(other)
        before = await state.ops.archives.export(tmp_path / "a")
        after = await other.ops.archives.export(tmp_path / "b")
        assert copied.kinds == before.kinds == after.kinds


async def test_an_unchanged_export_into_the_same_folder_writes_no_segment(tmp_path: Path) -> None:
    async with opened("memory") as state:
        await fill(store_of(state))
        await state.ops.archives.export(tmp_path)
        written = _times(tmp_path)
        await state.ops.archives.export(tmp_path)
        assert _times(tmp_path) == written
        await state.short_term.clear("s1")
        await state.short_term.clear("s2")
        await state.ops.archives.export(tmp_path)
        assert not any("states" in path for path in files(tmp_path))


async def test_a_tenant_with_data_is_left_as_it_is(tmp_path: Path) -> None:
    folder = await exported(tmp_path / "a")
    async with opened("memory") as state:
        await state.short_term.set_state("mine", {})
        with pytest.raises(ConflictError, match="has states already"):
            await state.ops.archives.load(folder)
        assert await state.episodes.get_session("s1") is None


async def test_an_archive_of_another_tenant_needs_a_word(tmp_path: Path) -> None:
    folder = await exported(tmp_path / "a")
    async with opened("memory", tenant="other") as state:
        with pytest.raises(InvalidInputError, match="tenant 'acme'"):
            await state.ops.archives.load(folder)
        await state.ops.archives.load(folder, rename=True)
        assert await state.episodes.get_session("s1") is not None


async def test_a_view_of_one_owner_has_no_archive() -> None:
    async with opened("memory") as state:
        with pytest.raises(NotSupportedError):
            _ = state.for_owner("ana").ops.archives


async def test_an_unknown_attribute_is_refused(tmp_path: Path) -> None:
    async with opened("memory") as state:
        with pytest.raises(InvalidInputError, match="without"):
            await state.ops.archives.export(tmp_path, without=["everything"])


async def test_what_is_left_out_is_not_in_the_archive(tmp_path: Path) -> None:
    async with opened("memory") as state, opened("memory") as other:
        await fill(store_of(state))
        report = await state.ops.archives.export(tmp_path, without=["tasks", "history"])
        assert {"tasks", "task_events", "events"}.isdisjoint(report.kinds)
        await other.ops.archives.load(tmp_path)
        assert await other.keys.list_keys()


async def test_a_folder_with_other_files_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    async with opened("memory") as state:
        with pytest.raises(InvalidInputError, match="empty folder"):
            await state.ops.archives.export(tmp_path)
    assert files(tmp_path) == {"thesis.txt": b"mine"}


async def test_the_archive_of_another_tenant_is_not_overwritten(tmp_path: Path) -> None:
    folder = await exported(tmp_path / "a")
    before = files(folder)
    async with opened("memory", tenant="other") as state:
        with pytest.raises(InvalidInputError, match="'acme'"):
            await state.ops.archives.export(folder)
    assert files(folder) == before


async def test_two_exports_into_one_folder_do_not_mix(tmp_path: Path) -> None:
    async with opened("memory") as state:
        await fill(store_of(state))
        async with ArchiveWriter(tmp_path, tenant="acme", at=SystemClock().now()):
            with pytest.raises(ConflictError, match="another process"):
                await state.ops.archives.export(tmp_path)
        seen: list[str] = []
        await state.ops.archives.export(tmp_path, progress=lambda done: seen.append(done.kind))
        assert {"events", "blobs", "tasks"} <= set(seen)
