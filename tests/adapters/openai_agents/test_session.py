"""The session of the OpenAI Agents SDK: exact, atomic, isolated, and callable from anywhere."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

WHY = "the OpenAI Agents SDK is not installed here: make test-adapters"
agents = pytest.importorskip("agents", reason=WHY)

from agents.memory import Session  # noqa: E402 - after the skip
from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402
from openai.types.responses import ResponseOutputMessage, ResponseOutputText  # noqa: E402

import holdfast  # noqa: E402
from holdfast import State  # noqa: E402
from holdfast.adapters.openai_agents import CompactingSession, HoldfastSession  # noqa: E402
from holdfast.bench.round_trips import RoundTrips  # noqa: E402
from holdfast.errors import InvalidInputError  # noqa: E402
from holdfast.values.ids import new_ref  # noqa: E402
from tests.engines.postgres import server  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="session")
agents.set_tracing_disabled(disabled=True)

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "plain"},
    {"role": "system", "content": ""},
    {"role": "developer", "content": "no role of ours"},
    {"role": "tool", "content": "nor an item of theirs"},
    {"content": "a\x00b \U0001f980", "role": "assistant", "id": "msg_1"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "parts"}]},
    {"type": "function_call", "call_id": "c1", "name": "tide", "arguments": '{"harbour": "Brest"}'},
    {"type": "function_call", "call_id": "", "name": "", "arguments": None},
    {"type": "function_call_output", "call_id": "c1", "output": "at 14:20"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}]},
    {"type": "compaction", "encrypted_content": "x" * 1000},
    {"numbers": [0, -1.5, 1e300, 2**60, True, None], "nested": {"": {"a.b": []}}},
    {},
]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def texts(session: HoldfastSession, limit: int | None = None) -> list[str]:
    return [one["content"] for one in await session.get_items(limit)]


async def test_items_come_back_equal_and_in_order(state: State) -> None:
    session = HoldfastSession("s1", state)
    assert isinstance(session, Session)
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    assert await session.get_items(limit=3) == ITEMS[-3:]
    assert await session.get_items(limit=0) == []
    for expected in reversed(ITEMS):
        assert await session.pop_item() == expected
    assert await session.pop_item() is None


async def test_a_pydantic_item_is_stored_as_what_was_set(state: State) -> None:
    session = HoldfastSession("s1", state)
    text = ResponseOutputText(text="hello", type="output_text", annotations=[])
    message = ResponseOutputMessage(
        id="1", type="message", role="assistant", content=[text], status="completed"
    )
    added: Any = [message]
    await session.add_items(added)
    [back] = await session.get_items()
    assert back == message.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (["text"], "items[0]"),
        ([user("fine"), None], "items[1]"),
        ("text", "items"),
        ([{"role": "user", "content": "a\ud800"}], "messages[0]"),
        ([{"n": float("nan")}], "messages[0]"),
        ([{"n": 2**70}], "messages[0]"),
        ([{"n": object()}], "messages[0]"),
        ([{"big": "x" * (2 << 20)}], "messages[0]"),
    ],
)
async def test_what_cannot_be_stored_is_an_error_and_nothing_is_added(
    state: State, bad: Any, field: str
) -> None:
    session = HoldfastSession("s1", state)
    with pytest.raises(InvalidInputError) as caught:
        await session.add_items(bad)
    assert caught.value.field.startswith(field)
    assert await session.get_items() == []
    with pytest.raises(InvalidInputError):
        await HoldfastSession("x" * 600, state).add_items([user("too long an id")])


@pytest.mark.parametrize("name", ["", " ", "a\n", "[", "holdfast.owner:3:ana:s1", "é" * 200])
async def test_any_text_is_a_session_id(state: State, name: str) -> None:
    session, other = HoldfastSession(name, state), HoldfastSession(name + "x", state)
    await session.add_items([user("mine")])
    assert await texts(HoldfastSession(name, state)) == ["mine"]
    assert await other.get_items() == []


async def test_tenants_owners_and_agents_do_not_see_each_other(state: State, database: str) -> None:
    async with holdfast.open(database, tenant=new_ref()) as elsewhere:
        views = [
            HoldfastSession("s1", state),
            HoldfastSession("s1", state.for_owner("ana")),
            HoldfastSession("s1", state.for_owner("bob")),
            HoldfastSession("s1", state, agent="critic"),
            HoldfastSession("s1", elsewhere),
        ]
        for at, view in enumerate(views):
            await view.add_items([user(f"of {at}")])
        for at, view in enumerate(views):
            assert await texts(view) == [f"of {at}"]
        await views[1].clear_session()
        assert await views[2].pop_item() == user("of 2")
        assert [len(await view.get_items()) for view in views] == [1, 0, 0, 1, 1]


async def test_two_writers_at_once_lose_nothing_and_mix_no_batch(state: State) -> None:
    one, two = HoldfastSession("s1", state), HoldfastSession("s1", state)
    await asyncio.gather(
        *(
            session.add_items([user(f"{name} {at} {part}") for part in range(3)])
            for at in range(10)
            for name, session in (("one", one), ("two", two))
        )
    )
    found = await texts(one)
    batches = [found[at : at + 3] for at in range(0, 60, 3)]
    assert all(len({text.rsplit(" ", 1)[0] for text in batch}) == 1 for batch in batches)
    assert len(set(found)) == 60
    popped = await asyncio.gather(*(s.pop_item() for _ in range(35) for s in (one, two)))
    gone = [item["content"] for item in popped if item]
    assert sorted(gone) == sorted(found)
    assert popped.count(None) == 10


async def test_kill_9_between_two_calls_leaves_the_first(database: str) -> None:
    tenant = new_ref()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.openai_agents.worker", database, tenant),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"between two calls\n"
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    async with holdfast.open(database, tenant=tenant) as state:
        session = HoldfastSession("s1", state)
        assert await texts(session) == ["first 0", "first 1", "first 2"]
        await session.add_items([user("second")])
        assert await texts(session, 2) == ["first 2", "second"]


async def test_three_threads_with_loops_of_their_own_and_the_state_s_loop(state: State) -> None:
    session = HoldfastSession("s1", state)
    met = threading.Barrier(3, timeout=60)

    def elsewhere(name: str) -> None:
        async def turn() -> None:
            for at in range(5):
                await session.add_items([user(f"{name} {at}")])

        met.wait()
        asyncio.run(turn())
        asyncio.run(turn())

    with ThreadPoolExecutor(3) as pool:
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(pool, elsewhere, name) for name in "abc"]
        await session.add_items([user("here")])
        await asyncio.gather(*work)
    found = await texts(session)
    assert len(found) == 31
    for name in "abc":
        mine = [text for text in found if text.startswith(name)]
        assert mine == [f"{name} {at}" for at in (*range(5), *range(5))]


async def test_a_cancelled_call_is_done_before_the_caller_hears_of_it(state: State) -> None:
    session = HoldfastSession("s1", state)
    task = asyncio.create_task(session.add_items([user("kept")]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await texts(session) == ["kept"]


async def test_each_call_is_one_round_trip(database: str, tmp_path: Path) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    url = database.replace(str(behind.folder), str(tmp_path))
    async with (
        trips.between(listen, behind.folder / listen.name),
        holdfast.open(url, tenant=new_ref()) as state,
    ):
        session, counted = HoldfastSession("s1", state), dict[str, int]()

        async def count(name: str, call: Callable[[], Any]) -> None:
            before = trips.count
            await call()
            counted[name] = trips.count - before

        # The first time, the statements are prepared.
        for _ in range(2):
            await count("add", lambda: session.add_items([user("a"), user("b")]))
            await count("get", session.get_items)
            await count("pop", session.pop_item)
            await count("clear", session.clear_session)
    assert counted == {"add": 1, "get": 1, "pop": 1, "clear": 1}


def tide(harbour: str) -> str:
    """When the water is high."""
    return f"high tide in {harbour}"


def script(*steps: Any) -> Any:
    return agents.Agent(
        name="pilot", tools=[agents.function_tool(tide)], model=ScriptedModel(steps)
    )


async def test_a_run_with_a_tool_goes_on_in_the_next_one_and_is_recalled(state: State) -> None:
    session = HoldfastSession("s1", state)
    call = function_call("tide", {"harbour": "Brest"}, call_id="c1")
    first = script([call], [assistant_message("At 14:20.")])
    result = await agents.Runner.run(first, "When is high tide?", session=session)
    assert result.final_output == "At 14:20."
    second = script([assistant_message("Yes.")])
    await agents.Runner.run(second, "Sure?", session=session)
    asked = second.model.last_call.input
    assert len(asked) == 5
    assert asked[-1] == {"role": "user", "content": "Sure?"}
    kinds = [one.get("type", one.get("role")) for one in await session.get_items()]
    assert kinds[:3] == ["user", "function_call", "function_call_output"]
    [hit] = await state.episodes.recall("openai-agents", "Brest", limit=1)
    assert hit.event.session_id == "s1"


async def summary(items: list[Any]) -> list[Any]:
    return [{"type": "compaction", "encrypted_content": f"{len(items)} items"}, items[-1]]


async def test_the_runner_compacts_a_long_session_in_one_step(state: State) -> None:
    session = CompactingSession("s1", state, compact=summary, should_compact=bool)
    await session.add_items([user("old"), *[{"role": "assistant", "content": "x"}] * 3])
    step = {"output": [assistant_message("done")], "response_id": "resp_1"}
    await agents.Runner.run(script(step), "go on", session=session)
    first, last = await session.get_items()
    assert first == {"type": "compaction", "encrypted_content": "6 items"}
    assert last["role"] == "assistant"


async def test_a_short_session_is_compacted_only_if_forced(state: State) -> None:
    session = CompactingSession("s1", state, compact=summary)
    await session.run_compaction({"force": True})
    assert await session.get_items() == []
    await session.add_items([user("a"), *[{"role": "assistant", "content": "x"}] * 9])
    await session.run_compaction()
    assert len(await session.get_items()) == 10
    await session.run_compaction({"force": True})
    assert len(await session.get_items()) == 2
    await session.add_items([{"role": "assistant", "content": "x"}] * 9)
    await session.run_compaction({})
    assert len(await session.get_items()) == 2


async def test_a_compaction_of_what_has_changed_since_replaces_nothing(state: State) -> None:
    other = HoldfastSession("s1", state)

    async def meanwhile(items: list[Any]) -> list[Any]:
        await other.add_items([user("added while it was compacted")])
        return await summary(items)

    session = CompactingSession("s1", state, compact=meanwhile)
    await session.add_items([user("a")])
    await session.run_compaction({"force": True})
    assert await texts(other) == ["a", "added while it was compacted"]

    async def fails(_items: list[Any]) -> list[Any]:
        raise RuntimeError("the model is down")

    session = CompactingSession("s1", state, compact=fails)
    with pytest.raises(RuntimeError):
        await session.run_compaction({"force": True})
    assert len(await other.get_items()) == 2
