"""What no suite of the framework asks of a checkpointer."""

from __future__ import annotations

import asyncio
import copy
import inspect
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

WHY = "LangGraph is not installed here: make test-adapters"
base = pytest.importorskip("langgraph.checkpoint.base", reason=WHY)

import holdfast  # noqa: E402 - after the skip
from holdfast import State  # noqa: E402
from holdfast.adapters.langgraph import HoldfastSaver, StrictSerializer  # noqa: E402
from holdfast.bench.round_trips import RoundTrips  # noqa: E402
from holdfast.blocking import Portal  # noqa: E402
from holdfast.checkpoints import TypedBytes, Write  # noqa: E402
from holdfast.errors import (  # noqa: E402
    CodecError,
    ConfigError,
    ConflictError,
    InvalidInputError,
)
from holdfast.values.ids import new_ref  # noqa: E402
from tests.adapters.langgraph.graphs import Delta, line, thread  # noqa: E402
from tests.engines.postgres import server  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _count(state: Any) -> Any:
    return {"log": [f"step {len(state['log'])}"]}


class Custom:
    """A class of a user."""

    def __init__(self, value: int) -> None:
        self.value = value


async def test_a_conversation_goes_on_after_the_state_was_opened_again(database: str) -> None:
    tenant, done = new_ref(), dict[str, Any]()
    for turn in range(3):
        async with holdfast.open(database, tenant=tenant) as state:
            graph = line(HoldfastSaver(state), _count)
            done = await graph.ainvoke({"log": [f"in {turn}"]}, thread("t1"))
    assert done["log"] == ["in 0", "step 1", "in 1", "step 3", "in 2", "step 5"]


async def test_kill_9_between_two_steps_loses_nothing_and_repeats_nothing(database: str) -> None:
    tenant = new_ref()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.langgraph.worker", database, tenant),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"in the second node\n"
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    ran = []

    def first(_state: Any) -> Any:
        ran.append("first")
        return {"log": ["first again"]}

    async with holdfast.open(database, tenant=tenant) as state:
        graph = line(HoldfastSaver(state), first, lambda _: {"log": ["second"]})
        assert (await graph.aget_state(thread("t1"))).next == ("n1",)
        done = await graph.ainvoke(None, thread("t1"))
    assert done["log"] == ["in", "first", "second"]
    assert ran == []


async def test_a_thawed_worker_cannot_fork_a_thread(state: State) -> None:
    frozen, thawed = asyncio.Event(), asyncio.Event()

    async def freeze(_state: Any) -> Any:
        frozen.set()
        await thawed.wait()
        return {"log": ["late"]}

    slow = line(HoldfastSaver(state, forks="refuse"), freeze)
    other = line(HoldfastSaver(state, forks="refuse"), _count)
    late = asyncio.ensure_future(slow.ainvoke({"log": ["in"]}, thread("t1"), durability="sync"))
    await frozen.wait()
    await other.ainvoke(None, thread("t1"))
    thawed.set()
    with pytest.raises(ConflictError, match="thread 't1': the newest checkpoint"):
        await late
    done = await other.ainvoke({"log": ["more"]}, thread("t1"))
    assert done["log"] == ["in", "step 1", "more", "step 3"]
    # Where forks are allowed, both would have gone on.


async def test_two_writers_at_once_both_keep_their_threads(state: State) -> None:
    graph = line(HoldfastSaver(state), _count, _count)
    done = await asyncio.gather(
        *(graph.ainvoke({"log": [f"in {at}"]}, thread(f"t{at % 5}-{at}")) for at in range(20))
    )
    assert [one["log"] for one in done] == [[f"in {at}", "step 1", "step 2"] for at in range(20)]
    forked = [graph.ainvoke({"log": [f"in {at}"]}, thread("one")) for at in range(10)]
    await asyncio.gather(*forked)
    newest = await graph.aget_state(thread("one"))
    assert newest.values["log"][-1].startswith("step")
    assert newest.next == ()


async def test_a_second_tenant_and_a_second_owner_with_the_same_ids_see_nothing(
    state: State,
) -> None:
    views = [state, state.for_tenant(new_ref()), state.for_owner("ana"), state.for_owner("bob")]
    for at, view in enumerate(views):
        await line(HoldfastSaver(view), _count).ainvoke({"log": [f"in {at}"]}, thread("t1"))
    for at, view in enumerate(views):
        saver = HoldfastSaver(view)
        found = await line(saver, _count).aget_state(thread("t1"))
        assert found.values["log"] == [f"in {at}", "step 1"]
        assert {one.config["configurable"]["thread_id"] async for one in saver.alist(None)} == {
            "t1"
        }
    await HoldfastSaver(views[2]).adelete_thread("t1")
    left = [await HoldfastSaver(view).aget_tuple(thread("t1")) is not None for view in views]
    assert left == [True, True, False, True]


def _sync_turns(saver: HoldfastSaver, name: str) -> None:
    graph = line(saver, _count)
    for at in range(3):
        graph.invoke({"log": [f"{name} {at}"]}, thread(name))


async def _turns(saver: HoldfastSaver, name: str) -> None:
    graph = line(saver, _count)
    for at in range(3):
        await graph.ainvoke({"log": [f"{name} {at}"]}, thread(name))
    assert len([one async for one in saver.alist(thread(name))]) == 9


async def test_three_threads_and_two_loops_use_one_saver(state: State) -> None:
    saver = HoldfastSaver(state)
    with ThreadPoolExecutor(3) as threads:
        works = [
            threads.submit(_sync_turns, saver, "a"),
            threads.submit(_sync_turns, saver, "b"),
            threads.submit(lambda: asyncio.run(_turns(saver, "c"))),
        ]
        await _turns(saver, "d")
        for work in works:
            await asyncio.wrap_future(work)
    for name in "abcd":
        found = await line(saver, _count).aget_state(thread(name))
        assert found.values["log"][::2] == [f"{name} 0", f"{name} 1", f"{name} 2"]


async def test_a_sync_call_on_the_states_own_loop_names_the_way_out(state: State) -> None:
    with pytest.raises(ConfigError, match="its name begins with an a"):
        line(HoldfastSaver(state), _count).invoke({"log": []}, thread("t1"))


async def test_a_portal_of_its_own_serves_sync_code_where_a_loop_runs() -> None:
    with Portal.open("memory:") as portal:
        saver = HoldfastSaver(portal)
        graph = line(saver, _count)
        # As in a notebook.
        assert graph.invoke({"log": ["in"]}, thread("t1"))["log"] == ["in", "step 1"]
        assert len(list(saver.list(thread("t1")))) == 3
        assert len(list(saver.list(thread("t1"), limit=1))) == 1
        saver.copy_thread("t1", "t2")
        saver.prune(["t2"])
        # The newest, and its parent: a channel that triggers a node is empty after it.
        left = [one.checkpoint["id"] for one in saver.list(thread("t2"))]
        assert left == [one.checkpoint["id"] for one in saver.list(thread("t1"))][:2]
        saver.delete_thread("t2")
        saver.delete_for_runs(["unknown"])
        assert saver.get_tuple(thread("t2")) is None


async def _poisoned(state: State, kind: str, data: bytes) -> HoldfastSaver:
    """A saver over a thread with one row that somebody else wrote."""
    saver = HoldfastSaver(state)
    graph = line(saver, _count)
    await graph.ainvoke({"log": ["in"]}, thread("t1"))
    newest = await state.checkpoints.get("t1")
    assert newest is not None
    write = Write("task", 0, "log", TypedBytes(kind, data))
    await state.checkpoints.put_writes("t1", "", newest.id, [write])
    return saver


async def test_a_row_that_names_a_callable_is_refused_and_nothing_is_executed(
    state: State, tmp_path: Path
) -> None:
    ormsgpack = pytest.importorskip("ormsgpack")
    proof = tmp_path / "proof"
    for code, arguments in (
        (0, f"touch {proof}"),
        (1, [f"touch {proof}"]),
        (2, {"command": f"touch {proof}"}),
    ):
        call = ormsgpack.packb(["os", "system", arguments])
        row = ormsgpack.packb([ormsgpack.Ext(code, call)])
        saver = await _poisoned(state, "msgpack", row)
        with pytest.raises(CodecError, match=r"os\.system, which is not allowed"):
            await saver.aget_tuple(thread("t1"))
        with pytest.raises(CodecError, match=r"os\.system"):
            _ = [one async for one in saver.alist(thread("t1"))]
        await saver.adelete_thread("t1")
    assert not proof.exists()


@pytest.mark.parametrize(("kind", "data"), [("pickle", b"cos\nsystem\n."), ("json", b"{}")])
async def test_a_row_of_another_kind_is_refused(state: State, kind: str, data: bytes) -> None:
    saver = await _poisoned(state, kind, data)
    with pytest.raises(CodecError, match=f"kind '{kind}', which is never read"):
        await saver.aget_tuple(thread("t1"))


async def test_a_class_is_read_where_it_is_allowed_and_else_the_error_says_how(
    state: State,
) -> None:
    ormsgpack = pytest.importorskip("ormsgpack")
    call = ormsgpack.packb([Custom.__module__, "Custom", 7])
    row = TypedBytes("msgpack", ormsgpack.packb(ormsgpack.Ext(0, call)))
    with pytest.raises(CodecError, match=r"pass allow=\[...\]"):
        StrictSerializer().loads_typed(row)
    for allow in ([Custom], [(Custom.__module__, "Custom")]):
        assert StrictSerializer(allow=allow).loads_typed(row).value == 7
    derived = HoldfastSaver(state).with_allowlist({(Custom.__module__, "Custom")})
    assert derived.serde.loads_typed(row).value == 7
    with pytest.raises(InvalidInputError, match="allow"):
        HoldfastSaver(state, serde=StrictSerializer(), allow=[Custom])


async def test_a_copy_of_a_saver_works_as_it_does(state: State) -> None:
    saver = HoldfastSaver(state, ttl_seconds=60)
    await line(copy.copy(saver), _count).ainvoke({"log": ["in"]}, thread("t1"))
    assert await saver.aget_tuple(thread("t1")) is not None


async def test_every_signature_is_the_frameworks_own() -> None:
    for name, method in vars(HoldfastSaver).items():
        theirs = getattr(base.BaseCheckpointSaver, name, None)
        if inspect.isfunction(method) and theirs is not None and not name.startswith("_"):
            ours = list(inspect.signature(method).parameters)
            assert ours == list(inspect.signature(theirs).parameters), name
    optional = {"delete_for_runs", "copy_thread", "prune", "get_delta_channel_history"}
    assert {*optional, *(f"a{name}" for name in optional)} <= set(vars(HoldfastSaver))


async def test_prune_keeps_the_state_of_a_delta_channel(state: State) -> None:
    saver = HoldfastSaver(state)
    graph = line(saver, _count, schema=Delta)
    for at in range(12):
        await graph.ainvoke({"log": [f"in {at}"]}, thread("t1"))
    before = (await graph.aget_state(thread("t1"))).values["log"]
    assert len(before) == 24
    await saver.acopy_thread("t1", "t2")
    count = len([one async for one in saver.alist(thread("t1"))])
    await saver.aprune(["t1"])
    left = len([one async for one in saver.alist(thread("t1"))])
    assert left < count / 2
    for name in ("t1", "t2"):
        assert (await graph.aget_state(thread(name))).values["log"] == before
    done = await graph.ainvoke({"log": ["more"]}, thread("t1"))
    assert done["log"] == [*before, "more", "step 25"]


async def test_odd_and_long_ids_come_back_as_they_were(state: State) -> None:
    saver = HoldfastSaver(state)
    for name in ("a\nb", "", '["x"]', "holdfast.owner:3:ana:t1", "sha256:x", "ß" * 256):
        await line(saver, _count).ainvoke({"log": ["in"]}, thread(name))
        found: Any = await saver.aget_tuple(thread(name))
        assert found.config["configurable"]["thread_id"] == name
        await saver.adelete_thread(name)
        assert await saver.aget_tuple(thread(name)) is None
    with pytest.raises(InvalidInputError, match="at most 512 bytes"):
        await line(saver, _count).ainvoke({"log": []}, thread("x" * 513))
    deep = "|".join(f"child:{at:036}" for at in range(30))
    checkpoint = base.empty_checkpoint()
    put = await saver.aput(thread("t1", checkpoint_ns=deep), checkpoint, {"source": "loop"}, {})
    assert put["configurable"]["checkpoint_ns"] == deep
    [listed] = [one async for one in saver.alist(thread("t1"))]
    assert listed.config == put
    await saver.acopy_thread("t1", "t2")
    assert await saver.aget_tuple(thread("t2", checkpoint_ns=deep)) is not None


async def test_put_put_writes_and_get_are_one_round_trip_each(
    database: str, tmp_path: Path
) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    url = database.replace(str(behind.folder), str(tmp_path))
    async with (
        trips.between(listen, behind.folder / listen.name),
        holdfast.open(url, tenant=new_ref()) as state,
    ):
        saver = HoldfastSaver(state)
        counted = {}
        # The first time, the statements are prepared.
        for name in ("t1", "t2"):
            checkpoint = base.empty_checkpoint()
            where = thread(name, checkpoint_ns="")
            before = trips.count
            where = await saver.aput(where, checkpoint, {"source": "input"}, {})
            counted["put"] = trips.count - before
            before = trips.count
            await saver.aput_writes(where, [("log", ["x"])], "task")
            counted["put_writes"] = trips.count - before
            before = trips.count
            assert await saver.aget_tuple(thread(name)) is not None
            counted["get"] = trips.count - before
            before = trips.count
            await saver.aget_delta_channel_history(config=where, channels=["log"])
            counted["history"] = trips.count - before
    assert counted == {"put": 1, "put_writes": 1, "get": 1, "history": 1}


async def test_a_thread_with_a_ttl_is_stored_with_it(state: State) -> None:
    with pytest.raises(InvalidInputError, match="ttl_seconds"):
        await line(HoldfastSaver(state, ttl_seconds=0), _count).ainvoke({"log": []}, thread("t1"))
    with pytest.raises(InvalidInputError, match="forks"):
        HoldfastSaver(state, forks="maybe")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="strategy"):
        await HoldfastSaver(state).aprune(["t1"], strategy="all")
