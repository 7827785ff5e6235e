"""The index in objects: a crash after any request of any call, and writers who come too late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import Paths, digest
from holdfast.engines.objects.ref_records import Change, RefRecords
from holdfast.values.clock import ManualClock
from holdfast.values.errors import CodecError, ConflictError, NotFoundError

pytestmark = pytest.mark.asyncio(loop_scope="session")

FACTS: dict[str, Any] = {
    "size_bytes": 3,
    "content_type": "text/plain",
    "sha256": "0123456789abcdef" * 4,
    "ttl_seconds": 60,
}
DAY = 86_400


class _PowerCutError(BaseException):
    """Nothing may catch it: the process is gone."""


class _Dying(Objects):
    """The real engine, which dies instead of sending its n-th write."""

    writes_left = 1_000_000

    def _spend(self) -> None:
        if self.writes_left <= 0:
            raise _PowerCutError
        self.writes_left -= 1

    async def put(self, path: str, data: Any) -> None:
        self._spend()
        await super().put(path, data)

    async def _create(self, path: str, data: bytes) -> bool:
        self._spend()
        return await super()._create(path, data)

    async def _delete(self, path: str) -> None:
        self._spend()
        await super()._delete(path)


def _files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name != "holdfast.json"
    }


def _storage(engine: Objects) -> ObjectBlobs:
    return ObjectBlobs(engine, ObjectBlobIndex(engine))


Call = Callable[[StoredBlobs, BlobIndex, list[str]], Awaitable[Any]]


async def _pin_often(blobs: StoredBlobs, _index: BlobIndex, refs: list[str]) -> None:
    for _ in range(4):
        await blobs.pin(refs[0])
        await blobs.unpin(refs[0])


CALLS: dict[str, Call] = {
    "store": lambda blobs, _index, _refs: blobs.store(b"new"),
    "pin": lambda blobs, _index, refs: blobs.pin(refs[0]),
    "unpin": lambda blobs, _index, refs: blobs.unpin(refs[0]),
    "pin and unpin": _pin_often,
    "delete": lambda blobs, _index, refs: blobs.delete(refs[0]),
    "delete pinned": lambda blobs, _index, refs: blobs.delete(refs[1]),
    "condemn": lambda _blobs, index, _refs: index.condemn(["nobody's"]),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_crash_at_any_write_leaves_good_refs_and_nothing_that_sweeps_do_not_remove(
    tmp_path: Path, name: str
) -> None:
    for writes in range(100):
        folder = tmp_path / str(writes)
        clock = ManualClock()
        engine = await _Dying.open(folder.as_uri() + "?fsync=false", clock=clock)
        index = BlobIndex(ObjectBlobIndex(engine))
        blobs = StoredBlobs(_storage(engine), ttl_seconds=60)
        refs = [await blobs.store(b"one"), await blobs.store(b"two")]
        await blobs.pin(refs[1])
        engine.writes_left = writes
        died = False
        try:
            await CALLS[name](blobs, index, refs)
        except _PowerCutError:
            died = True

        await _check_after_crash(folder, clock, refs)
        if not died:
            assert writes > 0
            return
    pytest.fail("never came to its end")


async def test_a_crash_while_a_pinned_blob_is_stored_leaves_it_pinned_or_nothing(
    tmp_path: Path,
) -> None:
    for writes in range(100):
        folder = tmp_path / str(writes)
        clock = ManualClock()
        engine = await _Dying.open(folder.as_uri() + "?fsync=false", clock=clock)
        engine.writes_left = writes
        died = False
        try:
            await StoredBlobs(_storage(engine), ttl_seconds=60).store(b"new", pinned=True)
        except _PowerCutError:
            died = True

        after = await Objects.open(folder.as_uri() + "?fsync=false", clock=clock)
        blobs = StoredBlobs(_storage(after), ttl_seconds=60)
        clock.advance(3 * DAY)
        await blobs.sweep()
        await _storage(after).sweep_orphans()
        for path in [one for one in _files(folder) if one.endswith("/0") and "/refs/" in one]:
            # It was claimed, so it is there, and the writer did not hear of it.
            ref = json.loads((folder / path).read_bytes())["ref"]
            assert (await blobs.stat(ref)).pinned
            assert await blobs.resolve(ref) == b"new"
            assert await blobs.delete(ref)
        await _check_after_crash(folder, clock, [])
        if not died:
            assert writes > 0
            return
    pytest.fail("never came to its end")


async def _check_after_crash(folder: Path, clock: ManualClock, refs: list[str]) -> None:
    """Every ref that is there is good; then let all expire, sweep, and look for what is left."""
    engine = await Objects.open(folder.as_uri() + "?fsync=false", clock=clock)
    index = BlobIndex(ObjectBlobIndex(engine))
    blobs = StoredBlobs(_storage(engine), ttl_seconds=60)
    for ref, data in zip(refs, (b"one", b"two"), strict=False):
        if await index.get(ref) is not None:
            assert await blobs.resolve(ref) == data
            await blobs.unpin(ref)
    clock.advance(61)
    await blobs.sweep()
    # What was taken and not forgotten comes again; what leads nowhere is cleared after a day.
    clock.advance(2 * DAY)
    await blobs.sweep()
    await _storage(engine).sweep_orphans()
    left = {path for path in _files(folder) if "/keys/" not in path}
    assert left == set()
    for path in _files(folder):
        assert b'"ref":null' in (folder / path).read_bytes()


async def test_a_crash_while_expired_blobs_are_swept_loses_none_of_them(tmp_path: Path) -> None:
    for writes in range(100):
        folder = tmp_path / str(writes)
        clock = ManualClock()
        engine = await _Dying.open(folder.as_uri() + "?fsync=false", clock=clock)
        blobs = StoredBlobs(_storage(engine), ttl_seconds=60)
        for _ in range(2):
            await blobs.store(b"expires")
        clock.advance(61)
        engine.writes_left = writes
        try:
            await blobs.sweep()
        except _PowerCutError:
            await _check_after_crash(folder, clock, [])
        else:
            assert _files(folder) == set()
            return
    pytest.fail("never came to its end")


async def test_a_put_that_died_before_its_claim_is_finished_by_the_same_put_again(
    tmp_path: Path,
) -> None:
    engine = await _Dying.open(tmp_path.as_uri(), clock=ManualClock())
    index = BlobIndex(ObjectBlobIndex(engine))
    engine.writes_left = 2
    with pytest.raises(_PowerCutError):
        await index.put("r1", "k1", **FACTS)
    engine.writes_left = 1000
    assert await index.get("r1") is None
    with pytest.raises(ConflictError):
        await index.put("r1", "k2", **FACTS)
    info = await index.put("r1", "k1", **FACTS)
    found = await index.get("r1")
    assert found is not None
    assert found.info == info


async def test_a_change_that_comes_after_the_ref_was_forgotten_is_refused(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri(), clock=ManualClock())
    index = BlobIndex(ObjectBlobIndex(engine))
    records = RefRecords(engine, Paths("default"))
    await index.put("r1", "k1", **FACTS)
    late = await records.read(digest("r1"))
    assert late is not None
    await index.take("r1")
    await index.forget(["r1"])
    for put_again in (False, True):
        if put_again:
            await index.put("r1", "k1", **FACTS)
        before = _files(tmp_path)
        assert await records.change(late, Change(None, None, None, "late")) is False
        assert _files(tmp_path) == before
    found = await index.get("r1")
    assert found is not None
    assert found.info.pinned is False


async def test_a_change_whose_number_was_used_and_cleared_is_refused(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri(), clock=ManualClock())
    index = BlobIndex(ObjectBlobIndex(engine))
    records = RefRecords(engine, Paths("default"))
    await index.put("r1", "k1", **FACTS)
    await index.pin("r1")
    late = await records.read(digest("r1"))
    assert late is not None
    for _ in range(3):
        await index.unpin("r1", ttl_seconds=60)
    assert await records.change(late, Change(None, None, None, "late")) is False
    found = await index.get("r1")
    assert found is not None
    assert found.info.pinned is False


async def test_what_is_kept_of_a_ref_does_not_grow_with_its_changes(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri(), clock=ManualClock())
    index = BlobIndex(ObjectBlobIndex(engine))
    await index.put("r1", "k1", **FACTS)
    sizes = []
    for _ in range(20):
        await index.pin("r1")
        await index.unpin("r1", ttl_seconds=60)
        sizes.append(len(_files(tmp_path)))
    assert max(sizes) == sizes[1] <= 5


async def test_pins_and_takes_at_once_agree_on_one_order(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri(), clock=ManualClock())
    index = BlobIndex(ObjectBlobIndex(engine))
    for round_ in range(5):
        ref = f"r{round_}"
        await index.put(ref, f"k{round_}", **FACTS)
        outcomes = await asyncio.gather(
            *(index.pin(ref) for _ in range(4)),
            *(index.unpin(ref, ttl_seconds=60) for _ in range(4)),
            index.take(ref),
            index.take(ref),
            return_exceptions=True,
        )
        assert len([blob for blob in outcomes[8:] if blob]) == 1
        assert {type(one) for one in outcomes[:8]} <= {type(None), NotFoundError}
        assert await index.get(ref) is None
        assert await index.forget([ref]) == 1
    assert _files(tmp_path) == set()


async def test_a_record_that_cannot_be_read_is_a_codec_error(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri())
    index = BlobIndex(ObjectBlobIndex(engine))
    await index.put("r1", "k1", **FACTS)
    (tmp_path / Paths("default").ref(digest("r1")) / "0").write_text("{}")
    with pytest.raises(CodecError):
        await index.get("r1")
