"""Threads of graphs in the view of one owner."""

from __future__ import annotations

import pytest

from holdfast import State
from holdfast.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.errors import ConflictError
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
VALUE = TypedBytes("json", b"1")


@pytest.fixture
def state(wired: State) -> State:
    """A state of each wiring."""
    return wired


def _step(id: str, parent: str | None = None, thread: str = "t1") -> Checkpoint:
    return Checkpoint(thread, "", id, parent, VALUE, VALUE, {"run_id": "r1"}, {"a": id})


async def _listed(view: State) -> list[tuple[str, str]]:
    return [(one.thread, one.id) async for one in view.checkpoints.list()]


async def test_threads_are_each_owners_own(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob", memory="shared")
    await ana.checkpoints.put(_step("c1"), new_values={"a": VALUE})
    await ana.checkpoints.put_writes("t1", "", "c1", [Write("k", 0, "a", VALUE)])
    before = await ana.checkpoints.get("t1")
    assert before is not None
    assert (before.thread, before.values) == ("t1", {"a": VALUE})
    for other in (bob, state, state.for_owner("an")):
        assert await other.checkpoints.get("t1") is None
        assert await _listed(other) == []
        assert await other.checkpoints.delete_runs(["r1"]) == 0
        assert await other.checkpoints.copy_thread("t1", "t2") == 0
        await other.checkpoints.put(_step("c0"), new_values={}, expected_parent="")
        await other.checkpoints.put(_step("c9", "c0"), new_values={})
        assert await other.checkpoints.prune(["t1"]) == 1
        assert await _listed(other) == [("t1", "c9")]
        assert await other.checkpoints.delete_threads(["t1"]) == 1
    assert await ana.checkpoints.get("t1") == before
    assert await _listed(ana) == [("t1", "c1")]
    await ana.checkpoints.copy_thread("t1", "t2")
    assert await _listed(ana) == [("t1", "c1"), ("t2", "c1")]
    assert await ana.checkpoints.delete_runs(["r1"]) == 2


async def test_a_conflict_names_the_thread_as_the_owner_does(state: State) -> None:
    ana = state.for_owner("ana")
    await ana.checkpoints.put(_step("c1"), new_values={})
    with pytest.raises(ConflictError, match="thread 't1': the newest") as caught:
        await ana.checkpoints.put(_step("c2"), new_values={}, expected_parent="")
    assert caught.value.key == "t1"


async def test_the_longest_ids_are_stored(state: State) -> None:
    long = "x" * 512
    ana = state.for_tenant(new_ref().ljust(512, "t")).for_owner("a" * 512)
    one = Checkpoint(long, long, long, None, VALUE, VALUE, {"run_id": long}, {long: long})
    await ana.checkpoints.put(one, new_values={long: VALUE})
    await ana.checkpoints.put_writes(long, long, long, [Write(long, 0, long, VALUE, long)])
    found = await ana.checkpoints.get(long, long)
    assert found is not None
    assert (found.values, found.writes) == ({long: VALUE}, (Write(long, 0, long, VALUE, long),))
    assert await ana.checkpoints.delete_runs([long]) == 1
