"""What every ``CheckpointStore`` promises about threads: lists, ancestors, copies and expiry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.testing.harness import Harness
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.errors import InvalidInputError

CONTRACT = "checkpoints"
pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = TypedBytes("json", b"{}")
A, B = TypedBytes("json", b"1"), TypedBytes("json", b"2")


def step(id: str, parent: str | None = None, thread: str = "t1", **more: Any) -> Checkpoint:
    """A checkpoint of the graph's own namespace."""
    return replace(Checkpoint(thread, "", id, parent, BODY, BODY), **more)


async def ids(store: CheckpointStore, **which: Any) -> list[str]:
    """What ``list`` gives, by id."""
    return [one.id async for one in store.list(**which)]


async def _delta(store: CheckpointStore, last: int, *, snapshots: Sequence[int]) -> None:
    """Steps of a thread whose channel ``log`` has a value only now and then, else writes."""
    for at in range(last + 1):
        own, above = f"c{at:03}", f"c{at - 1:03}" if at else None
        one = step(own, above, versions={"log": f"{at}", "other": "1"})
        value = TypedBytes("json", b"%d" % at) if at in snapshots else None
        new = {"log": value} if at else {"log": value, "other": A}
        await store.put(one, new_values=new)
        await store.put_writes("t1", "", own, [Write("k", 0, "log", A), Write("k", 1, "x", B)])


async def test_list_goes_by_id_downwards_over_all_threads_and_namespaces(
    store: CheckpointStore,
) -> None:
    for own, thread, space in (
        *(("c2", "t1", ""), ("c1", "t2", ""), ("c3", "t2", "child"), ("c1", "t1", "x")),
        *(("c1", "t1", ""), ("é", "t1", "")),
    ):
        await store.put(step(own, thread=thread, namespace=space), new_values={})
    found = [(one.id, one.thread, one.namespace) async for one in store.list()]
    assert found == [
        *(("é", "t1", ""), ("c3", "t2", "child"), ("c2", "t1", ""), ("c1", "t1", "")),
        *(("c1", "t1", "x"), ("c1", "t2", "")),
    ]


async def test_list_takes_only_what_meets_every_condition(store: CheckpointStore) -> None:
    one = step("c1", labels={"source": "loop", "step": 1}, versions={"a": "1"})
    await store.put(one, new_values={"a": A})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", B)])
    await store.put(step("c2", labels={"source": "loop", "step": 2}), new_values={})
    await store.put(step("c3", thread="t2", labels={"source": "input"}), new_values={})
    await store.put(step("c4", namespace="child"), new_values={})
    assert await ids(store, thread="t1") == ["c4", "c2", "c1"]
    assert await ids(store, namespace="") == ["c3", "c2", "c1"]
    assert await ids(store, thread="t1", namespace="") == ["c2", "c1"]
    assert await ids(store, labels={"source": "loop"}) == ["c2", "c1"]
    assert await ids(store, thread="t2", labels={"source": "loop"}) == []
    assert await ids(store, id="c3") == ["c3"]
    assert await ids(store, id="c3", thread="t1") == []
    assert await ids(store, limit=2) == ["c4", "c3"]
    [found] = [each async for each in store.list(labels={"step": 1, "source": "loop"})]
    assert found == replace(one, values={"a": A}, writes=(Write("k", 0, "a", B),))


async def test_list_compares_labels_as_json(store: CheckpointStore) -> None:
    values: list[Any] = [1, 1.0, True, "1", None, [1], {"a": 1}, "a\x00"]
    for at, value in enumerate(values):
        await store.put(step(f"c{at}", labels={"n": value, "x": at}), new_values={})
    for at, value in enumerate(values):
        assert await ids(store, labels={"n": value}) == [f"c{at}"]
    assert await ids(store, labels={"absent": None}) == []


async def test_before_takes_only_lesser_ids(store: CheckpointStore) -> None:
    for one_id in ("c1", "c2", "c3"):
        await store.put(step(one_id), new_values={})
    assert await ids(store, before="c3") == ["c2", "c1"]
    assert await ids(store, thread="t1", before="c2x", limit=1) == ["c2"]
    assert await ids(store, before="c1") == []


async def test_a_limit_of_zero_is_an_empty_result(store: CheckpointStore) -> None:
    await store.put(step("c1"), new_values={})
    assert await ids(store, limit=0) == []
    with pytest.raises(InvalidInputError, match="limit"):
        await ids(store, limit=-1)


async def test_list_reads_any_number_of_checkpoints(store: CheckpointStore) -> None:
    for thread in ("t1", "t2", "t3"):
        for at in range(80):
            await store.put(step(f"c{at:03}", thread=thread), new_values={})
    found = [(one.id, one.thread) async for one in store.list()]
    assert found == [
        (f"c{at:03}", thread) for at in reversed(range(80)) for thread in ("t1", "t2", "t3")
    ]
    assert len(await ids(store, limit=101)) == 101
    await store.copy_thread("t1", "t0")
    for at in range(80):
        await store.put(step(f"c{at:03}", thread="t0", namespace="x"), new_values={})
    assert len(await ids(store, thread="t0")) == 160


async def test_ancestors_are_the_parents_upwards_to_the_last_channel_without_a_value(
    store: CheckpointStore,
) -> None:
    await _delta(store, 9, snapshots=[2, 6, 9])
    found = await store.ancestors("t1", "", "c009", ["log"])
    # Its own value does not count: it is what the ancestors are asked for.
    assert [one.id for one in found] == ["c008", "c007", "c006"]
    assert [one.values for one in found] == [{}, {}, {"log": TypedBytes("json", b"6")}]
    assert [one.writes for one in found] == [(Write("k", 0, "log", A),)] * 3
    assert [one.id for one in await store.ancestors("t1", "", None, ["log"])] == [
        one.id for one in found
    ]
    assert [one.id for one in await store.ancestors("t1", "", "c001", ["log"])] == ["c000"]
    assert list(await store.ancestors("t1", "", "c009", [])) == []


async def test_an_ancestor_has_only_the_channels_that_are_still_without_a_value(
    store: CheckpointStore,
) -> None:
    await _delta(store, 5, snapshots=[2])
    found = await store.ancestors("t1", "", "c005", ["other", "log"])
    assert [(one.id, dict(one.values)) for one in found] == [
        ("c004", {"other": A}),
        ("c003", {}),
        ("c002", {"log": TypedBytes("json", b"2")}),
    ]
    assert [[write.channel for write in one.writes] for one in found] == [["log"]] * 3


async def test_ancestors_that_are_not_there_or_go_round_end_the_way(
    store: CheckpointStore,
) -> None:
    assert list(await store.ancestors("t1", "", None, ["a"])) == []
    assert list(await store.ancestors("t1", "", "c1", ["a"])) == []
    await store.put(step("c3", "c2"), new_values={})
    assert list(await store.ancestors("t1", "", "c3", ["a"])) == []
    await store.put(step("c2", "c1"), new_values={})
    await store.put(step("c1", "c3", versions={"b": "1"}), new_values={"b": A})
    found = await store.ancestors("t1", "", "c3", ["a", "b"])
    assert [one.id for one in found] == ["c2", "c1"]
    await store.put(step("c1", "c2", versions={"b": "1"}), new_values={})
    found = await store.ancestors("t1", "", "c3", ["a", "b"])
    assert [one.id for one in found] == ["c2", "c1"]


async def test_delete_threads_deletes_threads_with_all_they_have(
    harness: Harness, store: CheckpointStore
) -> None:
    empty = await harness.raw(CONTRACT)
    for thread in ("t1", "t2"):
        await store.put(step("c1", thread=thread, versions={"a": "1"}), new_values={"a": A})
        await store.put_writes(thread, "x", "c1", [Write("k", 0, "a", B)])
    assert await store.delete_threads(["t1", "t1", "unknown"]) == 1
    assert await store.get("t1") is None
    assert await ids(store) == ["c1"]
    # Nothing of it comes back under the same ids.
    await store.put(step("c1", versions={"a": "1"}), new_values={})
    assert await store.get("t1") == step("c1", versions={"a": "1"})
    assert await store.delete_threads(["t1", "t2"]) == 2
    assert await store.delete_threads(["t1", "t2"]) == 0
    assert await store.delete_threads([]) == 0
    assert await harness.raw(CONTRACT) == empty


async def test_delete_runs_deletes_the_checkpoints_of_runs_and_keeps_values_that_others_name(
    store: CheckpointStore,
) -> None:
    one = step("c1", versions={"a": "1", "b": "1"}, labels={"run_id": "r1"})
    await store.put(one, new_values={"a": A, "b": A})
    two = step("c2", "c1", versions={"a": "1", "b": "2"}, labels={"run_id": "r2"})
    await store.put(two, new_values={"b": B})
    await store.put(step("c3", thread="t2", labels={"run_id": "r1"}), new_values={})
    await store.put(step("c4", thread="t2", labels={"run_id": 1}), new_values={})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    assert await store.delete_runs(["r1", "unknown"]) == 2
    assert await ids(store) == ["c4", "c2"]
    assert await store.get("t1") == replace(two, values={"a": A, "b": B})
    # Neither the writes of the first nor the value that only it named are left.
    await store.put(one, new_values={})
    assert await store.get("t1", "", "c1") == replace(one, values={"a": A})
    assert await store.delete_runs([]) == 0


async def test_copy_thread_copies_all_that_the_target_does_not_have(
    store: CheckpointStore,
) -> None:
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": A})
    await store.put(step("c2", "c1", versions={"a": "1"}, namespace="x"), new_values={"a": B})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", B)])
    assert await store.copy_thread("t1", "t2") == 2
    for space in ("", "x"):
        source, target = await store.get("t1", space), await store.get("t2", space)
        assert source is not None
        assert target == replace(source, thread="t2")
    await store.put(step("c3", thread="t2", labels={"n": 1}), new_values={})
    await store.put(step("c3"), new_values={})
    await store.put(step("c4"), new_values={})
    assert await store.copy_thread("t1", "t2") == 1
    kept = await store.get("t2", "", "c3")
    assert kept is not None
    assert kept.labels == {"n": 1}
    await store.delete_threads(["t1"])
    assert len(await ids(store, thread="t2")) == 4
    assert await store.copy_thread("t1", "t3") == 0


async def test_a_thread_cannot_be_copied_to_itself(store: CheckpointStore) -> None:
    with pytest.raises(InvalidInputError, match="target"):
        await store.copy_thread("t1", "t1")


async def test_prune_leaves_the_newest_checkpoints_of_each_namespace(
    store: CheckpointStore,
) -> None:
    for thread in ("t1", "t2", "t3"):
        for at in range(4):
            for space in ("", "child"):
                one = step(f"c{at}", thread=thread, namespace=space, versions={"a": f"{at}"})
                await store.put(one, new_values={"a": A})
    assert await store.prune(["t1", "unknown"]) == 6
    assert await ids(store, thread="t1") == ["c3", "c3"]
    assert await store.prune(["t1", "t2"], keep=3) == 2
    assert await ids(store, thread="t2", namespace="") == ["c3", "c2", "c1"]
    assert len(await ids(store, thread="t3")) == 8
    found = await store.get("t1", "child")
    assert found is not None
    assert found.values == {"a": A}
    assert await store.prune([]) == 0


async def test_prune_keeps_the_ancestors_that_a_channel_without_a_value_needs(
    store: CheckpointStore,
) -> None:
    await _delta(store, 20, snapshots=[0, 10, 17])
    before = await store.ancestors("t1", "", None, ["log"])
    assert await store.prune(["t1"]) == 17
    assert await ids(store) == ["c020", "c019", "c018", "c017"]
    assert await store.ancestors("t1", "", None, ["log"]) == before
    found = await store.get("t1")
    assert found is not None
    assert found.values == {"other": A}


async def test_prune_drops_values_that_no_checkpoint_names(store: CheckpointStore) -> None:
    for at in range(3):
        one = step(f"c{at}", versions={"a": f"{at}", "b": "1"})
        await store.put(one, new_values={"a": A, **({"b": B} if at == 0 else {})})
    await store.put_writes("t1", "", "c0", [Write("k", 0, "a", A)])
    assert await store.prune(["t1"]) == 2
    again = step("c0", versions={"a": "0", "b": "1"})
    await store.put(again, new_values={})
    assert await store.get("t1", "", "c0") == replace(again, values={"b": B})


async def test_a_keep_of_zero_is_refused(store: CheckpointStore) -> None:
    await store.put(step("c1"), new_values={})
    with pytest.raises(InvalidInputError, match="keep: must be 1 or more"):
        await store.prune(["t1"], keep=0)
    assert await ids(store) == ["c1"]


async def test_a_thread_without_ttl_seconds_never_expires(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1"), new_values={})
    await harness.elapse(10 * 365 * 86_400)
    assert await ids(store) == ["c1"]


async def test_a_thread_expires_when_its_ttl_seconds_have_passed(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1", labels={"run_id": "r"}), new_values={}, ttl_seconds=60)
    await store.put(step("c2", thread="t2"), new_values={}, ttl_seconds=600)
    await harness.elapse(61)
    assert await store.get("t1") is None
    assert await store.get("t1", "", "c1") is None
    assert await ids(store) == ["c2"]
    assert await ids(store, thread="t1") == []
    assert list(await store.ancestors("t1", "", "c1", ["a"])) == []
    assert await store.copy_thread("t1", "t3") == 0
    assert await store.delete_runs(["r"]) == 0
    assert await store.prune(["t1"]) == 0
    assert await store.delete_threads(["t1", "t2"]) == 1


async def test_every_write_starts_the_window_again(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1"), new_values={}, ttl_seconds=60)
    await harness.elapse(50)
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    await harness.elapse(50)
    await store.put(step("c2", "c1"), new_values={})
    await harness.elapse(50)
    assert await ids(store) == ["c2", "c1"]
    await store.put(step("c3", "c2"), new_values={}, expected_parent="c2", ttl_seconds=600)
    await store.copy_thread("t1", "t2")
    await harness.elapse(590)
    assert len(await ids(store)) == 6
    await harness.elapse(20)
    assert await ids(store) == []


async def test_a_read_does_not_start_the_window_again(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1"), new_values={}, ttl_seconds=60)
    await harness.elapse(50)
    assert await store.get("t1") is not None
    assert await ids(store) == ["c1"]
    await harness.elapse(20)
    assert await store.get("t1") is None


async def test_a_thread_written_after_expiry_has_nothing_of_the_old_one(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": A}, ttl_seconds=60)
    await store.put_writes("t1", "", "c2", [Write("k", 0, "a", A)])
    await harness.elapse(61)
    await store.put(step("c2", versions={"a": "1"}), new_values={}, expected_parent="")
    assert [one async for one in store.list()] == [step("c2", versions={"a": "1"})]
    await harness.elapse(600)
    assert await ids(store) == ["c2"]


async def test_a_ttl_seconds_of_zero_or_less_is_refused(store: CheckpointStore) -> None:
    for ttl in (0, -1, float("nan")):
        with pytest.raises(InvalidInputError, match="ttl_seconds"):
            await store.put(step("c1"), new_values={}, ttl_seconds=ttl)
    assert await ids(store) == []


async def test_one_thread_never_sees_anothers_checkpoints(store: CheckpointStore) -> None:
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": A})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    await store.put(step("c1", thread="t2", versions={"a": "1"}), new_values={})
    assert await store.get("t2") == step("c1", thread="t2", versions={"a": "1"})
    await store.delete_threads(["t2"])
    await store.put(step("c0"), new_values={})
    await store.prune(["t2"])
    assert await ids(store) == ["c1", "c0"]


async def test_one_tenant_never_sees_anothers_checkpoints(
    harness: Harness, store: CheckpointStore
) -> None:
    other = harness.store(CONTRACT, tenant="other")
    mine = step("c1", versions={"a": "1"}, labels={"run_id": "r"})
    await store.put(mine, new_values={"a": A})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    before = await store.get("t1")
    assert await other.get("t1") is None
    assert [one async for one in other.list()] == []
    assert await other.copy_thread("t1", "t2") == 0
    await other.put(step("c1", versions={"a": "1"}), new_values={"a": None}, expected_parent="")
    await other.put(step("c2", "c1", labels={"run_id": "r"}), new_values={})
    await other.put_writes("t1", "", "c1", [Write("k", 0, "b", B)])
    assert await other.prune(["t1"]) == 1
    assert await other.delete_runs(["r"]) == 1
    assert await other.delete_threads(["t1"]) == 1
    assert await store.get("t1") == before
    assert await ids(store) == ["c1"]
