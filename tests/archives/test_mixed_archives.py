"""Archives of states on several engines: Redis beside Postgres, and an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast import AgentId, Event
from holdfast.testing.archive_scenes import fill
from holdfast.values.errors import NotSupportedError
from holdfast.values.ids import new_ref
from tests.archives.test_archives import files, opened, store_of
from tests.engines.postgres_database import empty_database
from tests.engines.seaweedfs_server import s3_server
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")


async def test_a_hybrid_is_drained_exported_and_loaded_elsewhere(tmp_path: Path) -> None:
    tenant = new_ref()
    async with (
        empty_database() as url,
        holdfast.open(url, redis=valkey().url, tenant=tenant, background=False) as hybrid,
        opened("memory", tenant) as plain,
    ):
        await hybrid.episodes.append([Event(ANA, "s1", "note", {"text": str(n)}) for n in range(9)])
        await hybrid.short_term.set_state("s1", {"step": 1})
        await hybrid.short_term.update_state("s1", {"step": 2})
        await hybrid.short_term.set_state("gone", {"step": 1})
        await hybrid.short_term.clear("gone")
        with pytest.raises(NotSupportedError, match="channel"):
            await hybrid.ops.archives.export(tmp_path / "a")
        await hybrid.ops.archives.export(tmp_path / "a", without=["channel"])
        await plain.ops.archives.load(tmp_path / "a")
        assert [one.payload["text"] for one in await plain.episodes.recent(ANA)] == list(
            "012345678"
        )
        assert await plain.short_term.get_state("s1") == {"step": 2}
        assert await plain.short_term.get_state("gone") == {}
        [event] = await plain.episodes.append([Event(ANA, "s1", "note", {})])
        assert event.seq == 10


async def test_a_hybrid_goes_on_with_what_was_loaded_into_it(tmp_path: Path) -> None:
    tenant = new_ref()
    async with (
        opened("memory", tenant) as plain,
        empty_database() as url,
        holdfast.open(url, redis=valkey().url, tenant=tenant, background=False) as hybrid,
    ):
        await fill(store_of(plain))
        before = await plain.ops.archives.export(tmp_path / "a", without=["channel"])
        await hybrid.ops.archives.load(tmp_path / "a")
        after = await hybrid.ops.archives.export(tmp_path / "b", without=["channel"])
        assert before.kinds == after.kinds
        assert files(tmp_path / "a") == files(tmp_path / "b")
        snapshot = await hybrid.short_term.snapshot("s2")
        assert snapshot.version == (await plain.short_term.snapshot("s2")).version
        assert await hybrid.short_term.update_state("s2", {"later": 1}) > snapshot.version
        [event] = await hybrid.episodes.append([Event(ANA, "s1", "note", {"text": "next"})])
        assert event.seq == 5
        await hybrid.ops.hybrid.consolidator.drain()
        assert len(await hybrid.episodes.recent(ANA, session_id="s1")) == 4


async def test_blobs_in_an_object_store_are_exported_and_loaded(tmp_path: Path) -> None:
    bucket = s3_server().url("archive-source"), s3_server().url("archive-target")
    async with (
        empty_database() as url,
        empty_database() as second,
        holdfast.open(url, blobs=bucket[0], tenant="acme", background=False) as source,
        holdfast.open(second, blobs=bucket[1], tenant="acme", background=False) as target,
        opened("memory") as plain,
    ):
        await fill(store_of(source))
        ref = await source.blobs.store(b"low tide" * 1_000_000, content_type="text/plain")
        before = await source.ops.archives.export(tmp_path / "a")
        await target.ops.archives.load(tmp_path / "a")
        await target.ops.archives.load(tmp_path / "a")
        after = await target.ops.archives.export(tmp_path / "b")
        assert before.kinds == after.kinds
        assert files(tmp_path / "a") == files(tmp_path / "b")
        assert await target.blobs.stat(ref) == await source.blobs.stat(ref)
        assert await target.blobs.resolve(ref) == b"low tide" * 1_000_000
        await target.ops.archives.copy_to(plain)
        assert await plain.blobs.resolve(ref) == b"low tide" * 1_000_000


async def test_an_index_of_blobs_in_objects_alone_is_refused(tmp_path: Path) -> None:
    async with holdfast.open("memory:", blobs=f"file://{tmp_path}/b") as state:
        await state.blobs.store(b"low tide")
        with pytest.raises(NotSupportedError, match="blobs"):
            await state.ops.archives.export(tmp_path / "a")
