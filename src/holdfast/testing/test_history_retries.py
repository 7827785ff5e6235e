"""The promises of ``HistoryProvider`` about ids: what is a retry, and what is another message."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import ConflictError
from holdfast.values.identity import AgentId

CONTRACT = "history"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")


def _turns(count: int) -> list[ChatMessage]:
    return [ChatMessage.user(f"turn {at}") for at in range(count)]


def _again(message: ChatMessage) -> ChatMessage:
    """The message as a caller builds it again for a retry: at another time."""
    return dataclasses.replace(message, created_at=datetime(2030, 1, 2, tzinfo=UTC))


async def _texts(store: Any, *, session: str = "s1") -> list[str]:
    return [one.text for one in await store.get_messages(ANA, session_id=session)]


async def test_the_same_id_and_body_again_is_a_no_op(store: Any) -> None:
    first, second = _turns(2)
    await store.append_many(ANA, [first, second], session_id="s1", run_id="r1")
    await store.append(ANA, first, session_id="s1", run_id="r1")
    await store.append_many(ANA, [second, first], session_id="s1", run_id="r1")
    assert await store.get_messages(ANA, session_id="s1") == [first, second]


async def test_the_same_id_and_body_with_another_time_is_the_same_message_and_the_first_time_stays(
    store: Any,
) -> None:
    first, second, third = _turns(3)
    await store.append(ANA, first, session_id="s1", run_id="r1")
    await store.append_many(ANA, [second, third], session_id="s1", run_id="r1")
    await store.append(ANA, _again(first), session_id="s1", run_id="r1")
    await store.append_many(ANA, [_again(third), _again(second)], session_id="s1", run_id="r1")
    fourth = ChatMessage.user("fourth", metadata={"k": [1e16]})
    batch = [_again(first), fourth, _again(fourth)]
    await store.append_many(ANA, batch, session_id="s1", run_id="r1")
    found = await store.get_messages(ANA, session_id="s1")
    assert found == [first, second, third, fourth]
    assert [one.seq for one in found] == [1, 2, 3, 4]
    for other in ({"content": [TextBlock("other")]}, {"role": "system"}, {"metadata": {"k": 1}}):
        changed = dataclasses.replace(_again(first), **other)
        with pytest.raises(ConflictError):
            await store.append(ANA, changed, session_id="s1", run_id="r1")


async def test_the_same_id_twice_in_one_batch_is_stored_once(store: Any) -> None:
    message = ChatMessage.user("once")
    await store.append_many(ANA, [message, message], session_id="s1")
    assert await _texts(store) == ["once"]


async def test_the_same_id_with_another_body_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    first = ChatMessage.user("first")
    await store.append(ANA, first, session_id="s1")
    changed = dataclasses.replace(first, content=[TextBlock("changed")])
    with pytest.raises(ConflictError) as caught:
        await store.append_many(ANA, [ChatMessage.user("new"), changed], session_id="s1")
    assert caught.value.key == first.id
    assert await store.get_messages(ANA, session_id="s1") == [first]


async def test_the_same_id_with_another_run_is_a_conflict(store: Any) -> None:
    message = ChatMessage.user("hello")
    await store.append(ANA, message, session_id="s1", run_id="r1")
    with pytest.raises(ConflictError):
        await store.append(ANA, message, session_id="s1", run_id="r2")


async def test_the_same_id_of_another_agent_in_the_session_is_a_conflict(store: Any) -> None:
    message = ChatMessage.user("hello")
    await store.append(ANA, message, session_id="s1")
    for again in (message, _again(message)):
        with pytest.raises(ConflictError):
            await store.append(BEN, again, session_id="s1")
    assert await store.count_messages(BEN, session_id="s1") == 0


async def test_two_equal_messages_with_different_ids_stay_two(store: Any) -> None:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    for _ in range(2):
        await store.append(ANA, ChatMessage.user("yes", created_at=when), session_id="s1")
    assert await _texts(store) == ["yes", "yes"]


async def test_the_same_id_in_another_session_is_another_message(store: Any) -> None:
    message = ChatMessage.user("hello")
    await store.append(ANA, message, session_id="s1")
    await store.append(ANA, dataclasses.replace(message, content=[]), session_id="s2")
    assert await store.count_messages(ANA, session_id="s2") == 1
    assert await _texts(store, session="s1") == ["hello"]


async def test_concurrent_retries_of_one_message_store_it_once(store: Any) -> None:
    message = ChatMessage.user("once")
    await asyncio.gather(*(store.append(ANA, message, session_id="s1") for _ in range(20)))
    assert await store.count_messages(ANA, session_id="s1") == 1
