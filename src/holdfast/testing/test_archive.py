"""What a dump and a load keep, and how a tenant goes on that was loaded."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from holdfast.spi.archive.kinds import KINDS
from holdfast.spi.archive.storage import ArchiveStorage
from holdfast.testing.archive_scenes import ANA, fill
from holdfast.testing.archives import check_round_trips, dumped, lines, loaded
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, LeaseLostError
from holdfast.values.events import Event
from holdfast.values.items import ItemKey, ItemPut

CONTRACT = "keys"
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def scene(harness: Harness) -> dict[str, Any]:
    """A tenant with a little of everything."""
    if harness.archive() is None:
        pytest.skip("the engine has no archive")
    if harness.state_versions:
        kept = harness.store("short_term", kept_versions=harness.state_versions)
        for n in range(3):
            await kept.set_state("kept", {"n": n})
    return await fill(harness.store)


def _archive(harness: Harness, tenant: str = "default") -> ArchiveStorage:
    found = harness.archive(tenant=tenant)
    assert found is not None
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def copy(harness: Harness, scene: dict[str, Any]) -> Any:
    """The stores of a tenant that was loaded with the scene."""
    del scene
    _, records, blobs = await dumped(_archive(harness))
    await loaded(_archive(harness, "copy"), records, blobs)
    return partial(harness.store, tenant="copy")


async def test_what_is_dumped_loaded_and_dumped_again_is_the_same(
    harness: Harness, scene: dict[str, Any]
) -> None:
    del scene
    _, records, _ = await dumped(_archive(harness))
    without = ["data_keys", *([] if harness.state_versions else ["earlier_states"])]
    assert [kind.name for kind in KINDS if not records[kind.name]] == without
    await check_round_trips(harness)


async def test_a_snapshot_does_not_see_what_is_written_after_it(
    harness: Harness, scene: dict[str, Any]
) -> None:
    del scene
    at, before, _ = await dumped(_archive(harness))
    async with _archive(harness).snapshot() as snapshot:
        first = [one async for one in snapshot.records("sessions")]
        await harness.store("episodes").append([Event(ANA, "new", "note", {"late": True})])
        await harness.store("short_term").set_state("new", {})
        found = {kind.name: [one async for one in snapshot.records(kind.name)] for kind in KINDS}
    assert found["sessions"] == first
    assert lines(found, at) == lines(before, at)


async def test_one_tenant_never_dumps_another_s_records(
    harness: Harness, scene: dict[str, Any]
) -> None:
    del scene
    _, records, blobs = await dumped(_archive(harness, "other"))
    assert not any(records.values())
    assert not blobs


async def test_a_loaded_log_goes_on_after_its_last_position(copy: Any) -> None:
    [event] = await copy("episodes").append([Event(ANA, "s1", "note", {"text": "next"})])
    assert event.seq == 5  # two, one of which was cleared, one, and a message
    [again] = await copy("episodes").append([Event(ANA, "s3", "note", {"text": "again"})])
    assert again.seq == 4  # a deleted session goes on too
    assert (await copy("episodes").get_session("s3")).subject == "ben"


async def test_loaded_events_and_facts_are_found_by_their_words(copy: Any) -> None:
    [hit, *_] = await copy("episodes").recall(ANA, "is the harbour closed?")
    assert hit.event.payload == {"text": "the harbour is closed"}
    assert [one.content for one in await copy("long_term").search(ANA, "tide")] == [
        "the tide is high"
    ]


async def test_a_loaded_key_of_a_save_still_finds_its_fact(copy: Any) -> None:
    facts = copy("long_term")
    [fact] = await facts.search(ANA, "tide")
    with pytest.raises(ConflictError):
        await facts.save(ANA, "something else", idempotency_key="k1")
    assert fact.superseded_by is None


async def test_versions_go_on_after_the_loaded_ones(harness: Harness, copy: Any) -> None:
    for key in ("s1", "s2"):
        loaded_version = (await copy("short_term").snapshot(key)).version
        assert loaded_version == (await harness.store("short_term").snapshot(key)).version
        assert await copy("short_term").set_state(key, {"later": 1}) > loaded_version
    [item] = await copy("items").get_many([ItemKey(("users",), "b")])
    [later] = await copy("items").put_many([ItemPut(("users",), "b", {"n": 2})])
    assert later > item.version


async def test_a_loaded_api_key_is_that_of_its_new_tenant(
    harness: Harness, scene: dict[str, Any], copy: Any
) -> None:
    assert await harness.store("keys").verify(scene["key"])
    assert len(await copy("keys").list_keys()) == 2
    assert {one.owner for one in await copy("keys").list_keys()} == {"ana", "ben"}


async def test_loaded_tasks_are_claimed_in_their_order_and_wake_their_parents(
    scene: dict[str, Any], copy: Any
) -> None:
    tasks = copy("tasks")
    [urgent] = await tasks.claim("w9", limit=1)
    assert urgent.task.id == scene["waits"]
    others = await tasks.claim("w9", limit=10)
    assert {one.task.id for one in others}.isdisjoint({scene["first"], scene["later"]})
    await tasks.complete_many([one.lease for one in others])  # one is in the parent's context
    await tasks.transition(scene["lease"], "completed")
    assert scene["first"] in {one.task.id for one in await tasks.claim("w9", limit=10)}
    with pytest.raises(LeaseLostError):
        await tasks.append_message(scene["lease"], ChatMessage.assistant("late"))


async def test_a_loaded_timeline_replays_and_its_messages_keep_their_order(
    harness: Harness, scene: dict[str, Any], copy: Any
) -> None:
    there, here = harness.store("tasks"), copy("tasks")
    of = {"owner": "ana"}
    assert await here.events(scene["first"], **of) == await there.events(scene["first"], **of)
    assert await here.artifacts(scene["first"], **of) == await there.artifacts(scene["first"], **of)
    assert await here.steps(scene["first"]) == await there.steps(scene["first"])
    assert await here.list_outbox(scene["first"], **of) == await there.list_outbox(
        scene["first"], **of
    )


async def test_an_import_continues_and_a_tenant_with_data_refuses_one(
    harness: Harness, scene: dict[str, Any]
) -> None:
    del scene
    target = _archive(harness, "target")
    assert await target.begin_import("a1") == frozenset()
    await target.segment_loaded("a1", "s1")
    await target.segment_loaded("a1", "s1")
    assert await target.begin_import("a1") == frozenset({"s1"})
    await target.finish_import("a1")
    assert await target.begin_import("a1") is None
    with pytest.raises(ConflictError, match="already"):
        await _archive(harness).begin_import("a1")


async def test_a_blob_whose_bytes_end_with_an_error_is_not_there(
    harness: Harness, scene: dict[str, Any]
) -> None:
    del scene
    _, records, _ = await dumped(_archive(harness))
    record: Any = records["blobs"][0]

    async def torn() -> Any:
        yield b"x" * (3 << 20)
        raise ConflictError("blob", record.ref, "wrong digest")

    with pytest.raises(ConflictError, match="wrong digest"):
        await _archive(harness, "target").load_blob(record, torn())
    _, found, _ = await dumped(_archive(harness, "target"))
    assert found["blobs"] == []


async def test_every_record_is_one_line_of_json(harness: Harness, scene: dict[str, Any]) -> None:
    del scene
    _, records, _ = await dumped(_archive(harness))
    for kind in KINDS:
        for record in records[kind.name]:
            line = msgspec.json.encode(record)
            assert b"\n" not in line
            assert msgspec.json.decode(line, type=kind.record) == record
