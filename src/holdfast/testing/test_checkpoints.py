"""What every ``CheckpointStore`` promises about checkpoints and writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.testing.harness import Harness
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.errors import ConflictError, InvalidInputError

CONTRACT = "checkpoints"
pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = TypedBytes("json", b'{"v": 1}')
ABOUT = TypedBytes("msgpack", b"\x80")
A, B = TypedBytes("json", b"1"), TypedBytes("json", b"2")


def step(id: str, parent: str | None = None, thread: str = "t1", **more: Any) -> Checkpoint:
    """A checkpoint of the graph's own namespace."""
    return replace(Checkpoint(thread, "", id, parent, BODY, ABOUT), **more)


async def test_a_checkpoint_comes_back_as_it_was_put(store: CheckpointStore) -> None:
    labels = {"source": "loop", "step": 1, "nested": {"b": 1, "a": [None, 1e16, "\x00"]}, "": -0.0}
    one = step("c2", "c1", labels=labels, versions={"a": "1", "b": "i2"})
    await store.put(one, new_values={"a": A, "b": B})
    found = await store.get("t1", "", "c2")
    assert found == replace(one, values={"a": A, "b": B})
    assert repr(sorted(found.labels.items())) == repr(sorted(labels.items()))
    assert type(found.values["a"]) is TypedBytes


async def test_an_unknown_checkpoint_is_none(store: CheckpointStore) -> None:
    assert await store.get("t1") is None
    await store.put(step("c1"), new_values={})
    assert await store.get("t1", "", "c2") is None
    assert await store.get("t1", "child") is None
    assert await store.get("t2") is None


async def test_without_an_id_get_returns_the_checkpoint_with_the_greatest_id(
    store: CheckpointStore,
) -> None:
    for one_id in ("b", "é", "Z", "a", "\U0001f980", "\uffff"):
        await store.put(step(one_id), new_values={})
    found = await store.get("t1")
    assert found is not None
    assert found.id == "\U0001f980"


async def test_a_namespace_has_its_own_checkpoints(store: CheckpointStore) -> None:
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": A})
    child = step("c1", "c0", namespace="child|x", versions={"a": "1"})
    await store.put(child, new_values={"a": B})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    own, other = await store.get("t1"), await store.get("t1", "child|x")
    assert own == step("c1", versions={"a": "1"}, values={"a": A}, writes=(Write("k", 0, "a", A),))
    assert other == replace(child, values={"a": B})


async def test_a_checkpoint_has_the_values_of_the_versions_that_it_names(
    store: CheckpointStore,
) -> None:
    await store.put(step("c1", versions={"a": "1", "b": "1"}), new_values={"a": A, "b": A})
    await store.put(step("c2", "c1", versions={"a": "1", "b": "2"}), new_values={"b": B})
    await store.put(step("c3", "c2", versions={"b": "1", "unknown": "9"}), new_values={})
    found = [await store.get("t1", "", one_id) for one_id in ("c1", "c2", "c3")]
    assert [one and one.values for one in found] == [{"a": A, "b": A}, {"a": A, "b": B}, {"b": A}]


async def test_a_value_of_none_records_that_a_channel_is_empty_at_its_version(
    store: CheckpointStore,
) -> None:
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": A})
    await store.put(step("c2", "c1", versions={"a": "2"}), new_values={"a": None})
    found = await store.get("t1")
    assert found is not None
    assert (found.versions, found.values) == ({"a": "2"}, {})
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": None})
    first = await store.get("t1", "", "c1")
    assert first is not None
    assert first.values == {}


async def test_a_checkpoint_put_again_replaces_the_first(store: CheckpointStore) -> None:
    await store.put(step("c1", "c0", labels={"n": 1}, versions={"a": "1"}), new_values={"a": A})
    again = step("c1", None, labels={"m": 2}, versions={"a": "1"}, body=ABOUT, metadata=BODY)
    await store.put(again, new_values={"a": B})
    assert await store.get("t1") == replace(again, values={"a": B})
    assert [one.id async for one in store.list()] == ["c1"]


async def test_a_new_value_of_a_channel_without_a_version_is_refused(
    store: CheckpointStore,
) -> None:
    with pytest.raises(InvalidInputError, match=r"new_values\.b") as caught:
        await store.put(step("c1", versions={"a": "1"}), new_values={"a": A, "b": B})
    assert caught.value.field == "new_values.b"
    assert await store.get("t1") is None


async def test_values_and_writes_on_a_checkpoint_that_is_put_are_refused(
    store: CheckpointStore,
) -> None:
    with pytest.raises(InvalidInputError, match=r"checkpoint\.values: must be empty"):
        await store.put(step("c1", versions={"a": "1"}, values={"a": A}), new_values={})
    with pytest.raises(InvalidInputError, match=r"checkpoint\.writes: must be empty"):
        await store.put(step("c1", writes=(Write("k", 0, "a", A),)), new_values={})
    assert await store.get("t1") is None


async def test_a_checkpoint_that_is_its_own_parent_is_refused(store: CheckpointStore) -> None:
    with pytest.raises(InvalidInputError, match=r"checkpoint\.parent"):
        await store.put(step("c1", "c1"), new_values={})
    assert await store.get("t1") is None


async def test_bytes_come_back_exactly_as_they_went_in(store: CheckpointStore) -> None:
    every = bytes(range(256)) * 5000
    for at, data in enumerate((b"", b"\x00", every)):
        value = TypedBytes("bytes", data)
        one = step(f"c{at}", versions={"a": f"{at}"}, body=value, metadata=value)
        await store.put(one, new_values={"a": value})
        await store.put_writes("t1", "", one.id, [Write("k", 0, "a", value)])
        found = await store.get("t1", "", one.id)
        assert found == replace(one, values={"a": value}, writes=(Write("k", 0, "a", value),))


async def test_a_put_with_the_expected_parent_is_done(store: CheckpointStore) -> None:
    await store.put(step("c1"), new_values={})
    await store.put(step("c0", namespace="child"), new_values={})
    await store.put(step("c2", "c1"), new_values={}, expected_parent="c1")
    found = await store.get("t1")
    assert found is not None
    assert found.id == "c2"


async def test_a_put_with_another_expected_parent_is_a_conflict_and_writes_nothing(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1"), new_values={}, ttl_seconds=600)
    await store.put(step("c2", "c1"), new_values={})
    before = await harness.raw(CONTRACT)
    for parent, thread in (("c1", "t1"), ("c9", "t1"), ("c1", "unknown")):
        late = step("c3", parent, thread, versions={"a": "1"})
        with pytest.raises(ConflictError, match="newest checkpoint is") as caught:
            await store.put(late, new_values={"a": A}, expected_parent=parent, ttl_seconds=1)
        assert (caught.value.kind, caught.value.key) == ("thread", thread)
    assert await harness.raw(CONTRACT) == before


async def test_an_empty_expected_parent_means_that_there_must_be_no_checkpoint_yet(
    store: CheckpointStore,
) -> None:
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    await store.put(step("c1"), new_values={}, expected_parent="")
    with pytest.raises(ConflictError, match="the newest checkpoint is 'c1', not none"):
        await store.put(step("c2"), new_values={}, expected_parent="")
    await store.put(step("c1", namespace="child"), new_values={}, expected_parent="")


async def test_a_put_that_is_retried_with_its_expected_parent_is_done(
    store: CheckpointStore,
) -> None:
    for _ in range(2):
        await store.put(step("c1"), new_values={}, expected_parent="")
    for _ in range(2):
        await store.put(step("c2", "c1"), new_values={}, expected_parent="c1")
    with pytest.raises(ConflictError):
        await store.put(step("c2", "c0"), new_values={}, expected_parent="c0")
    assert [one.id async for one in store.list()] == ["c2", "c1"]


async def test_of_many_who_put_with_one_expected_parent_one_wins(store: CheckpointStore) -> None:
    for parent in ("", "c-won"):
        outcomes = await asyncio.gather(
            *(
                store.put(
                    step(f"d{at}" if parent else "c-won", parent or None, labels={"at": at}),
                    new_values={},
                    expected_parent=parent,
                )
                for at in range(20 if parent else 1)
            ),
            return_exceptions=True,
        )
        lost = [one for one in outcomes if one is not None]
        assert [type(one) for one in lost] == [ConflictError] * (len(outcomes) - 1)
    assert len([one async for one in store.list()]) == 2


async def test_writes_come_back_by_path_task_and_index(store: CheckpointStore) -> None:
    writes = [
        Write("k2", 1, "a", A, "p"),
        Write("k2", 0, "b", B, "p"),
        Write("k1", 5, "a", A, "p"),
        Write("k9", 0, "a", A, ""),
        Write("k1", -1, "a", A, "p"),
        Write("k1", 0, "a", A, "p\x00"),
        Write("k1", 7, "a", A, "P"),
        Write("k1", 8, "a", A, "é"),
    ]
    await store.put(step("c1"), new_values={})
    await store.put_writes("t1", "", "c1", writes[:4])
    await store.put_writes("t1", "", "c1", writes[4:])
    found = await store.get("t1")
    assert found is not None
    ordered = sorted(writes, key=lambda one: (one.path, one.task, one.index))
    assert found.writes == tuple(ordered)


async def test_a_write_at_an_index_of_zero_or_more_is_stored_once(store: CheckpointStore) -> None:
    await store.put(step("c1"), new_values={})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A), Write("k", 0, "b", B)])
    await store.put_writes("t1", "", "c1", [Write("k", 0, "c", B, "p"), Write("k", 1, "c", B)])
    found = await store.get("t1")
    assert found is not None
    assert found.writes == (Write("k", 0, "a", A), Write("k", 1, "c", B))


async def test_a_write_at_an_index_below_zero_replaces_the_earlier_one(
    store: CheckpointStore,
) -> None:
    await store.put(step("c1"), new_values={})
    await store.put_writes("t1", "", "c1", [Write("k", -1, "a", A), Write("k", -2, "a", A)])
    await store.put_writes("t1", "", "c1", [Write("k", -1, "x", A), Write("k", -1, "b", B, "p")])
    found = await store.get("t1")
    assert found is not None
    assert found.writes == (Write("k", -2, "a", A), Write("k", -1, "b", B, "p"))


async def test_writes_may_be_put_before_their_checkpoint(store: CheckpointStore) -> None:
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", A)])
    assert await store.get("t1") is None
    await store.put(step("c1"), new_values={})
    found = await store.get("t1")
    assert found is not None
    assert found.writes == (Write("k", 0, "a", A),)


async def test_no_writes_are_no_change(harness: Harness, store: CheckpointStore) -> None:
    before = await harness.raw(CONTRACT)
    await store.put_writes("t1", "", "c1", [])
    assert await harness.raw(CONTRACT) == before


async def test_an_index_that_is_not_a_whole_number_of_32_bits_is_refused(
    store: CheckpointStore,
) -> None:
    wrong: tuple[Any, ...] = (1 << 31, -(1 << 31) - 1, 1.0, True, "1", None)
    for index in wrong:
        with pytest.raises(InvalidInputError, match=r"writes\[1\]\.index"):
            await store.put_writes(
                "t1", "", "c1", [Write("k", 0, "a", A), Write("k", index, "a", A)]
            )
    await store.put(step("c1"), new_values={})
    ends = (Write("k", -(1 << 31), "a", A), Write("k", (1 << 31) - 1, "a", A))
    await store.put_writes("t1", "", "c1", ends)
    found = await store.get("t1")
    assert found is not None
    assert found.writes == ends


async def test_an_id_that_is_not_an_id_is_refused(store: CheckpointStore) -> None:
    wrong: tuple[Any, ...] = ("", "a\n", "a" * 513, 7, None)
    for one_id in wrong:
        with pytest.raises(InvalidInputError, match="thread"):
            await store.put(step("c1", thread=one_id), new_values={})
        with pytest.raises(InvalidInputError, match="id"):
            await store.put(step(one_id), new_values={})
        with pytest.raises(InvalidInputError, match=r"writes\[0\]\.task"):
            await store.put_writes("t1", "", "c1", [Write(one_id, 0, "a", A)])
        with pytest.raises(InvalidInputError, match=r"threads\[1\]"):
            await store.delete_threads(["t1", one_id])
    with pytest.raises(InvalidInputError, match="threads: must be a list"):
        await store.prune("t1")
    assert [one async for one in store.list()] == []


async def test_a_label_that_is_not_json_is_refused_by_its_path_and_nothing_is_written(
    store: CheckpointStore,
) -> None:
    labels: dict[str, Any] = {"ok": 1, "deep": [{"x": float("nan")}]}
    with pytest.raises(InvalidInputError) as caught:
        await store.put(step("c1", labels=labels), new_values={})
    assert caught.value.field == "checkpoint.labels.deep[0].x"
    assert await store.get("t1") is None


async def test_what_a_store_returns_is_the_callers_to_mutate(store: CheckpointStore) -> None:
    one = step("c1", labels={"a": [1]}, versions={"a": "1"})
    await store.put(one, new_values={"a": A})
    found: Any = await store.get("t1")
    found.labels["a"].append(2)
    found.versions.clear()
    found.values.clear()
    assert await store.get("t1") == replace(one, values={"a": A})


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: CheckpointStore) -> None:
    labels: dict[str, Any] = {"a": [1]}
    versions, values = {"a": "1"}, {"a": A}
    await store.put(step("c1", labels=labels, versions=versions), new_values=values)
    labels["a"].append(2)
    versions["a"] = "2"
    values["a"] = B
    one = step("c1", labels={"a": [1]}, versions={"a": "1"}, values={"a": A})
    assert await store.get("t1") == one


async def test_a_checkpoint_is_still_there_after_a_reopen(
    harness: Harness, store: CheckpointStore
) -> None:
    await store.put(step("c1", versions={"a": "1"}), new_values={"a": A})
    await store.put_writes("t1", "", "c1", [Write("k", 0, "a", B)])
    before = await store.get("t1")
    await harness.reopen()
    assert await harness.store(CONTRACT).get("t1") == before
