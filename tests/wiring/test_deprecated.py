"""Names that have gone still work, and say what to use."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

import holdfast
from holdfast import ChatMessage, Entity, Relationship
from holdfast.errors import InvalidInputError, NotSupportedError
from holdfast.memory import SlidingWindow
from holdfast.queues import NewTask

pytestmark = pytest.mark.asyncio(loop_scope="session")
SAID = [ChatMessage.user("one"), ChatMessage.user("two"), ChatMessage.user("three")]


async def _one_task(state: Any, **how: Any) -> Any:
    return await state.tasks.get((await state.tasks.list(limit=1)).tasks[0].id, **how)


CALLS: dict[str, tuple[str, str, Callable[..., Awaitable[Any]]]] = {
    "recent": ("n", "limit", lambda state, **how: state.memory("a").recent(**how)),
    "recall": ("k", "limit", lambda state, **how: state.memory("a").recall("two", **how)),
    "hydrate": ("window", "recent_limit", lambda state, **how: state.memory("a").hydrate(**how)),
    "hydrate, recalled": (
        *("k", "limit"),
        lambda state, **how: state.memory("a").hydrate("two", **how),
    ),
    "assemble": ("k", "limit", lambda state, **how: state.memory("a").assemble("two", 99, **how)),
    "assemble, recent": (
        *("window", "recent_limit"),
        lambda state, **how: state.memory("a").assemble("zzz", 99, **how),
    ),
    "assemble, facts": (
        *("facts", "facts_limit"),
        lambda state, **how: state.memory("a").assemble("boats", 99, **how),
    ),
    "get_messages": (
        *("last", "recent_limit"),
        lambda state, **how: state.history.get_messages("a", session_id="s1", **how),
    ),
    "get_neighbors": (
        *("max_entities", "limit"),
        lambda state, **how: state.graph.get_neighbors("a", **how),
    ),
    "context_messages": (
        *("last", "limit"),
        lambda state, **how: state.tasks.context_messages("c1", agents=["a"], **how),
    ),
    "get_context": (
        *("history_length", "messages_limit"),
        lambda state, **how: state.tasks.get_context("c1", **how),
    ),
    "get": (
        *("history_length", "messages_limit"),
        _one_task,
    ),
    "list": ("history_length", "messages_limit", lambda state, **how: state.tasks.list(**how)),
}


def _shape(answer: Any) -> str:
    """An answer without what is made anew by each call."""
    return re.sub(r"\bid='[^']*'|datetime\([^)]*\)", "", repr(answer))


async def _fill(state: Any) -> None:
    await state.history.append_many("a", SAID, session_id="s1")
    await state.long_term.save("a", "boats are here")
    await state.long_term.save("a", "boats were there")
    await state.graph.add_entities([Entity("City", {}, "a"), Entity("City", {}, "b")])
    await state.graph.add_relationships([Relationship("a", "b", "NEAR", {}, "r")])
    for message in SAID:
        await state.tasks.submit("a", message, session_id="c1")


@pytest.mark.parametrize("name", CALLS)
async def test_an_old_keyword_works_and_names_the_new_one(name: str) -> None:
    old, new, call = CALLS[name]
    method = name.partition(",")[0]
    async with holdfast.open("memory:") as state:
        await _fill(state)
        said = rf"^{method}\({old}=…\) is deprecated: use {method}\({new}=…\)$"
        with pytest.warns(DeprecationWarning, match=said) as seen:
            answer = _shape(await call(state, **{old: 0}))
        assert [warning.filename for warning in seen] == [__file__]
        assert answer == _shape(await call(state, **{new: 0}))
        assert answer != _shape(await call(state, **{new: 5}))
        with pytest.raises(InvalidInputError, match=f"{new}: is given twice: {old} is its old"):
            await call(state, **{old: 0, new: 0})


async def test_the_last_item_of_a_page_is_taken_for_its_cursor() -> None:
    async with holdfast.open("memory:") as state:
        await _fill(state)
        span = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
        calls: list[Callable[..., Awaitable[Any]]] = [
            partial(state.episodes.between, "a", *span, session_id="s1"),
            partial(state.memory("a", session_id="s1").between, *span),
        ]
        for call in calls:
            events = await call()
            with pytest.warns(DeprecationWarning, match=r"use between\(cursor=…\)$") as seen:
                assert await call(after=events[0]) == events[1:]
            assert {warning.filename for warning in seen} == {__file__}
            with (
                pytest.warns(DeprecationWarning, match="cursor="),
                pytest.raises(InvalidInputError, match="after: must be the last event"),
            ):
                await call(after="s1")
        for name in ("s1", "s2"):
            await state.episodes.start_session("a", name)
        listed: Any = state.episodes.list_sessions
        first, second = await listed("a")
        with pytest.warns(DeprecationWarning, match="cursor="):
            assert await listed("a", after=first) == [second]


async def test_the_old_keyword_of_a_channel_and_of_a_timeline_works() -> None:
    async with holdfast.open("memory:") as state:
        channel: Any = state.channel("alerts")
        one, two = [await channel.publish({"n": n}) for n in (1, 2)]
        with pytest.warns(DeprecationWarning, match=r"use read\(cursor=…\)$"):
            assert await channel.read(after=one.cursor) == [two]
        with pytest.warns(DeprecationWarning, match=r"use subscribe\(cursor=…\)$"):
            stream = channel.subscribe(after=one.cursor)
        assert await anext(stream) == two
        await stream.aclose()
        tasks: Any = state.tasks
        task = await tasks.submit("a", SAID[0])
        events = await tasks.events(task.id)
        with pytest.warns(DeprecationWarning, match=r"use events\(after_seq=…\)$"):
            assert await tasks.events(task.id, after=1) == events[1:]
        with pytest.warns(DeprecationWarning, match=r"use follow\(after_seq=…\)$"):
            assert await anext(tasks.follow(task.id, after=1)) == events[1]


async def test_an_old_keyword_of_a_claim_works() -> None:
    async with holdfast.open("memory:") as state:
        await state.tasks.submit("a", SAID[0])
        with pytest.warns(DeprecationWarning, match="messages_limit"):
            [claimed] = await state.tasks.claim("w1", history_length=0)  # type: ignore[call-arg]
    assert claimed.task.messages == []


async def test_an_operators_call_is_found_where_it_was() -> None:
    async with holdfast.open("memory:") as opened:
        state: Any = opened
        for name in ("health", "embed_pending", "pending_events"):
            with pytest.warns(DeprecationWarning, match=f"^state.{name} is deprecated") as seen:
                old = await getattr(state, name)()
            assert [warning.filename for warning in seen] == [__file__]
            assert type(old) is type(await getattr(state.ops, name)())
        with pytest.warns(DeprecationWarning, match="use state.ops.elsewhere$"):
            assert state.elsewhere() is None
        with (
            pytest.warns(DeprecationWarning, match="use state.ops.assign_context$"),
            pytest.raises(NotSupportedError, match="moving sessions"),
        ):
            await state.assign_context("c1", owner="ana")
        with pytest.warns(DeprecationWarning, match="use state.ops.work$"):
            assert state.work is opened.ops.work
        with (
            pytest.warns(DeprecationWarning, match=r"use state.ops.hybrid$"),
            pytest.raises(NotSupportedError, match="consolidation"),
        ):
            _ = state.hybrid
        with pytest.raises(AttributeError, match="'State' object has no attribute 'pending'"):
            _ = state.pending


async def test_an_old_field_works() -> None:
    with pytest.warns(DeprecationWarning, match=r"SlidingWindow\(limit=…\)") as seen:
        window = SlidingWindow(last=3)  # type: ignore[call-arg]
    assert [warning.filename for warning in seen] == [__file__]
    assert window == SlidingWindow(3)
    with pytest.warns(DeprecationWarning, match="use SlidingWindow.limit$"):
        assert window.last == 3


async def test_the_session_of_a_task_has_its_old_name_too() -> None:
    async with holdfast.open("memory:") as state:
        tasks: Any = state.tasks
        with pytest.warns(DeprecationWarning, match=r"use submit\(session_id=…\)$") as seen:
            task = await tasks.submit("a", SAID[0], context_id="c1")
        assert [warning.filename for warning in seen] == [__file__]
        assert task.session_id == "c1"
        with pytest.warns(DeprecationWarning, match="use TaskRecord.session_id$"):
            assert task.context_id == "c1"
        with pytest.warns(DeprecationWarning, match="session_id"):
            assert (await tasks.list(context_id="c1")).tasks[0].id == task.id
        new_task: Any = NewTask
        with pytest.warns(DeprecationWarning, match=r"use NewTask\(session_id=…\)$"):
            assert new_task("a", SAID[0], context_id="c2").session_id == "c2"
