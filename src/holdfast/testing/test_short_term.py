"""What every ``ShortTerm`` promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.short_term import ShortTerm
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError
from holdfast.values.states import StateSnapshot

CONTRACT = "short_term"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_state_comes_back_as_it_was_set(store: ShortTerm) -> None:
    await store.set_state("s1", {"task": "tidy", "steps": [1, 2], "nested": {"a": None}})
    assert await store.get_state("s1") == {"task": "tidy", "steps": [1, 2], "nested": {"a": None}}


async def test_the_state_of_an_unknown_session_is_empty(store: ShortTerm) -> None:
    assert await store.get_state("nobody") == {}
    assert await store.get_state("nobody", keys=["a"]) == {}


async def test_set_state_replaces_the_whole_state(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1, "b": 2})
    await store.set_state("s1", {"b": 3})
    assert await store.get_state("s1") == {"b": 3}


async def test_set_state_replaces_with_no_moment_in_which_the_state_is_empty(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"n": 0})
    seen = await asyncio.gather(
        *(store.get_state("s1") if n % 2 else store.set_state("s1", {"n": n}) for n in range(100))
    )
    assert [state for state in seen if isinstance(state, dict) and state.keys() != {"n"}] == []


async def test_update_state_merges_the_top_level_keys_of_the_patch(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"a": 1, "b": 2})
    await store.update_state("s1", {"b": 3, "c": 4})
    assert await store.get_state("s1") == {"a": 1, "b": 3, "c": 4}


async def test_update_state_replaces_a_nested_value_as_a_whole(store: ShortTerm) -> None:
    await store.set_state("s1", {"cart": {"apples": 3, "pears": 1}})
    await store.update_state("s1", {"cart": {"apples": 4}})
    assert await store.get_state("s1") == {"cart": {"apples": 4}}


async def test_update_state_makes_the_state_of_an_unknown_session(store: ShortTerm) -> None:
    await store.update_state("new", {"a": 1})
    assert await store.get_state("new") == {"a": 1}


async def test_100_concurrent_patches_of_different_keys_all_survive(
    store: ShortTerm,
) -> None:
    await asyncio.gather(*(store.update_state("s1", {f"k{n}": n}) for n in range(100)))
    assert await store.get_state("s1") == {f"k{n}": n for n in range(100)}


async def test_a_none_value_stores_null(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    await store.update_state("s1", {"a": None})
    assert await store.get_state("s1") == {"a": None}
    assert await store.get_state("s1", keys=["a"]) == {"a": None}


async def test_delete_keys_removes_keys_in_the_same_step_as_the_patch(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"here": 1, "kept": 0})
    seen = await asyncio.gather(
        *(
            call
            for n in range(20)
            for call in (
                store.update_state("s1", {"here": n}, delete_keys=["there"]),
                store.get_state("s1"),
                store.update_state("s1", {"there": n}, delete_keys=["here"]),
                store.get_state("s1"),
            )
        )
    )
    states = [one for one in [*seen, await store.get_state("s1")] if isinstance(one, dict)]
    shapes = {tuple(sorted(state)) for state in states}
    assert shapes <= {("here", "kept"), ("kept", "there")}


async def test_deleting_a_key_that_is_not_there_does_nothing(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    await store.update_state("s1", {}, delete_keys=["b"])
    assert await store.get_state("s1") == {"a": 1}


async def test_a_key_both_patched_and_deleted_is_refused(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    with pytest.raises(InvalidInputError) as caught:
        await store.update_state("s1", {"a": 2}, delete_keys=["a"])
    assert caught.value.field == "delete_keys"
    assert await store.get_state("s1") == {"a": 1}


async def test_an_empty_patch_is_a_write_too_and_makes_an_empty_state(
    store: ShortTerm,
) -> None:
    await store.update_state("s1", {})
    made = await store.snapshot("s1")
    await store.update_state("s1", {})
    touched = await store.snapshot("s1")
    assert made.state == touched.state == {}
    assert 0 < made.version < touched.version


async def test_keys_reads_only_those_keys(store: ShortTerm) -> None:
    await store.set_state("s1", {"current_task": "tidy", "notes": "long", "b": 2})
    wanted = ["current_task", "unknown", "b", "b"]
    assert await store.get_state("s1", keys=wanted) == {"current_task": "tidy", "b": 2}
    assert (await store.snapshot("s1", keys=wanted)).state == {"current_task": "tidy", "b": 2}


async def test_an_empty_list_of_keys_reads_nothing(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    assert await store.get_state("s1", keys=[]) == {}


async def test_a_text_in_place_of_a_list_of_keys_is_refused(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1, "b": 2})
    with pytest.raises(InvalidInputError) as caught:
        await store.get_state("s1", keys="ab")
    assert caught.value.field == "keys"
    with pytest.raises(InvalidInputError) as caught:
        await store.update_state("s1", {}, delete_keys="ab")
    assert caught.value.field == "delete_keys"
    assert await store.get_state("s1") == {"a": 1, "b": 2}


async def test_a_key_is_any_text_the_empty_one_included(store: ShortTerm) -> None:
    state = {"": 1, "a\x00b": 2, "版本": 3, "version": 4, "x" * 1000: 5}
    await store.set_state("s1", state)
    await store.update_state("s1", {"a.b": 6}, delete_keys=["版本"])
    assert await store.get_state("s1", keys=["", "a\x00b", "a.b"]) == {"": 1, "a\x00b": 2, "a.b": 6}
    assert "版本" not in await store.get_state("s1")


async def test_values_come_back_exactly_as_they_went_in(store: ShortTerm) -> None:
    value: dict[str, Any] = {"z": [1e16, -0.0, 1, 1.0, True, "a\x00b", "🦀"], "a": {"y": 2**63 - 1}}
    await store.set_state("s1", {"v": value})
    await store.update_state("s1", {"w": value})
    state = await store.get_state("s1")
    assert repr(state["v"]) == repr(state["w"]) == repr(value)


@pytest.mark.parametrize("bad", [float("nan"), 2**63, "\ud800", (1, 2), {1: 2}, b"x"])
async def test_a_value_that_is_not_json_is_refused_by_its_path_and_nothing_is_written(
    store: ShortTerm, bad: object
) -> None:
    await store.set_state("s1", {"a": 1})
    before = await store.snapshot("s1")
    with pytest.raises(InvalidInputError, match=r"^state\.deep\[1\]"):
        await store.set_state("s1", {"deep": [0, bad]})
    with pytest.raises(InvalidInputError, match=r"^patch\.deep\[1\]"):
        await store.update_state("s1", {"a": 2, "deep": [0, bad]})
    assert await store.snapshot("s1") == before


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 513, "\ud800", None])
async def test_a_session_id_that_is_not_an_id_is_refused(store: ShortTerm, bad: Any) -> None:
    for call in (
        store.get_state(bad),
        store.snapshot(bad),
        store.set_state(bad, {}),
        store.update_state(bad, {}),
        store.clear(bad),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == "session_id"


async def test_clear_removes_the_state(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    await store.clear("s1")
    assert await store.get_state("s1") == {}
    await store.update_state("s1", {"b": 2})
    assert await store.get_state("s1") == {"b": 2}


async def test_clear_is_idempotent(store: ShortTerm) -> None:
    await store.clear("s1")
    await store.set_state("s1", {"a": 1})
    await store.clear("s1")
    await store.clear("s1")
    assert await store.snapshot("s1") == StateSnapshot({})


async def test_one_session_never_sees_anothers_state(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    await store.set_state("s2", {"a": 2})
    await store.update_state("s2", {"b": 2}, delete_keys=["a"])
    assert await store.get_state("s1") == {"a": 1}
    await store.clear("s2")
    assert await store.get_state("s1") == {"a": 1}
    assert await store.get_state("S1") == {}


async def test_one_tenant_never_sees_anothers_state(harness: Harness, store: ShortTerm) -> None:
    other = harness.store(CONTRACT, tenant="acme")
    await store.set_state("s1", {"mine": 1})
    assert await other.snapshot("s1") == StateSnapshot({})
    await other.set_state("s1", {"theirs": 2}, expected_version=0)
    await other.clear("s1")
    assert await store.get_state("s1") == {"mine": 1}


async def test_what_a_store_returns_is_the_callers_to_mutate(store: ShortTerm) -> None:
    await store.set_state("s1", {"list": [1], "dict": {"a": 1}})
    for state in (await store.get_state("s1"), (await store.snapshot("s1")).state):
        state["list"].append(2)
        state["dict"]["b"] = 2
        state["new"] = True
    assert await store.get_state("s1") == {"list": [1], "dict": {"a": 1}}


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: ShortTerm) -> None:
    state, patch = {"a": [1]}, {"b": [2]}
    await store.set_state("s1", state)
    await store.update_state("s1", patch)
    state["a"].append(9)
    patch["b"].append(9)
    state["c"] = patch["c"] = [9]
    assert await store.get_state("s1") == {"a": [1], "b": [2]}


async def test_a_state_is_still_there_after_a_reopen(harness: Harness, store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    before = await store.snapshot("s1")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.snapshot("s1") == before
    await harness.elapse(61)
    assert await again.get_state("s1") == {}


async def test_get_many_returns_a_snapshot_for_each_session_in_the_order_asked(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"a": [1]})
    await store.set_state("s2", {"b": 2}, ttl_seconds=60)
    found = await store.get_many(["s2", "s1", "s2"])
    expected = [await store.snapshot(session) for session in ("s2", "s1", "s2")]
    assert found == expected
    assert [bool(one.expires_at) for one in found] == [True, False, True]
    found[0].state["b"] = 3
    assert found[2].state == {"b": 2}


async def test_get_many_of_an_unknown_session_is_an_empty_snapshot(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("s1", {"a": 1})
    await store.set_state("s2", {"a": 1}, ttl_seconds=60)
    await harness.elapse(61)
    none = StateSnapshot({})
    assert await store.get_many(["nobody", "s1", "s2"]) == [none, await store.snapshot("s1"), none]
    other = harness.store(CONTRACT, tenant="other")
    assert await other.get_many(["s1"]) == [none]


async def test_get_many_of_no_sessions_is_an_empty_result(store: ShortTerm) -> None:
    assert await store.get_many([]) == []


async def test_get_many_of_a_text_in_place_of_a_list_of_ids_is_refused(store: ShortTerm) -> None:
    text: Any = "s1"
    with pytest.raises(InvalidInputError) as caught:
        await store.get_many(text)
    assert caught.value.field == "session_ids"
    with pytest.raises(InvalidInputError) as caught:
        await store.get_many(["s1", ""])
    assert caught.value.field == "session_ids[1]"


async def test_get_many_of_more_than_1000_sessions_is_refused(store: ShortTerm) -> None:
    sessions = [f"s{n}" for n in range(1001)]
    assert await store.get_many(sessions[:1000]) == [StateSnapshot({})] * 1000
    with pytest.raises(InvalidInputError) as caught:
        await store.get_many(sessions)
    assert caught.value.field == "session_ids"
