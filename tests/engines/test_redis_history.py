"""What the time to live of a transcript means, and what it costs to append."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from holdfast.contracts.history import History
from holdfast.engines.redis.transcripts import DEFAULT_TTL_SECONDS
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.identity import AgentId
from tests.engines.redis import RedisHarness
from tests.engines.redis_engine import bare

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA, BEN = AgentId("", "ana"), AgentId("", "ben")


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[RedisHarness]:
    """An empty server whose clock can be moved."""
    opened = RedisHarness()
    await opened.open()
    yield opened
    await opened.close()


async def _say(history: History, text: str, agent: AgentId = ANA, **how: Any) -> ChatMessage:
    message = ChatMessage.user(text)
    await history.append(agent, message, session_id="s1", **how)
    return message


async def _texts(history: History, agent: AgentId = ANA) -> list[str]:
    return [one.text for one in await history.get_messages(agent, session_id="s1")]


async def test_a_transcript_is_gone_its_time_to_live_after_its_last_message(
    harness: RedisHarness,
) -> None:
    history = harness.store("history", ttl_seconds=60)
    await _say(history, "one")
    await harness.elapse(40)
    await _say(history, "two")
    await harness.elapse(40)
    assert await _texts(history) == ["one", "two"]
    await harness.elapse(21)
    assert await _texts(history) == []
    assert await history.count_messages(ANA, session_id="s1") == 0


async def test_without_a_time_to_live_a_transcript_stays(harness: RedisHarness) -> None:
    short, permanent = (harness.store("history", ttl_seconds=ttl) for ttl in (60, None))
    await _say(short, "one")
    await _say(permanent, "two")
    await harness.elapse(10**8)
    assert await _texts(permanent) == ["one", "two"]
    async with bare() as client:
        assert {await client.pttl(key) for key in await client.keys("hf:*:default:*")} == {-1}


async def test_the_default_is_a_week(harness: RedisHarness) -> None:
    history = harness.store("history")
    assert DEFAULT_TTL_SECONDS == 7 * 86_400
    await _say(history, "one")
    await harness.elapse(DEFAULT_TTL_SECONDS + 1)
    assert await _texts(history) == []


@pytest.mark.parametrize("bad", [0, -1, float("nan"), "60"])
async def test_a_time_to_live_that_is_no_span_is_refused(harness: RedisHarness, bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="ttl_seconds"):
        await _say(harness.store("history", ttl_seconds=bad), "one")


async def test_everything_that_a_transcript_has_expires_with_it(harness: RedisHarness) -> None:
    history = harness.store("history", ttl_seconds=60)
    await _say(history, "one", run_id="r1")
    await _say(history, "two", BEN)
    await harness.elapse(67)
    async with bare() as client:
        assert await client.keys("*") == [b"hf:{s00}:shards"]


async def test_one_agent_that_goes_on_does_not_keep_another_ones_transcript(
    harness: RedisHarness,
) -> None:
    history = harness.store("history", ttl_seconds=60)
    old = await _say(history, "ana's")
    for at in range(3):
        await harness.elapse(25)
        await _say(history, f"ben's {at}", BEN)
    assert await _texts(history) == []
    # The place of the expired message is free, for its agent and for the other one.
    await history.append(ANA, dataclasses.replace(old, content=[]), session_id="s1")
    with pytest.raises(ConflictError):
        await history.append(BEN, old, session_id="s1")
    assert await history.count_messages(ANA, session_id="s1") == 1
    assert await _texts(history, BEN) == [f"ben's {at}" for at in range(3)]
    [back] = await history.get_messages(ANA, session_id="s1")
    assert back.seq == 5


async def test_a_store_with_a_shorter_time_does_not_cut_what_another_one_keeps(
    harness: RedisHarness,
) -> None:
    long, short = (harness.store("history", ttl_seconds=ttl) for ttl in (600, 10))
    message = await _say(long, "ana's")
    await _say(short, "ben's", BEN)
    await harness.elapse(300)
    await long.append(ANA, message, session_id="s1")
    assert await _texts(long) == ["ana's"]
    await _say(long, "more")
    assert [one.seq for one in await long.get_messages(ANA, session_id="s1")] == [1, 3]


async def test_a_cleared_run_leaves_nothing_of_itself(harness: RedisHarness) -> None:
    history = harness.store("history", ttl_seconds=None)
    await _say(history, "kept")
    for at in range(1200):
        await history.append(ANA, ChatMessage.user(f"{at}"), session_id="s1", run_id="r1")
    await history.clear_run(ANA, session_id="s1", run_id="r1")
    assert await _texts(history) == ["kept"]
    async with bare() as client:
        [index] = await client.keys("*:idx:*")
        assert await client.hlen(index) == 2
        await history.clear(ANA, session_id="s1")
        assert await client.hkeys(index) == [b"s"]
        assert await client.keys("*:msg:*") == []


async def test_an_append_costs_no_more_in_a_long_session(harness: RedisHarness) -> None:
    history = harness.store("history")
    calls = []
    async with bare() as client:
        for length in (0, 5000):
            turns = [ChatMessage.user(f"{at}") for at in range(length)]
            await history.append_many(ANA, turns, session_id="s1")
            await client.config_resetstat()
            await _say(history, "one more")
            stats = await client.info("commandstats")
            calls.append({name: stat["calls"] for name, stat in stats.items() if "x" in name})
    assert calls[1]["cmdstat_xadd"] == 1
    assert "cmdstat_xrange" not in calls[1]
