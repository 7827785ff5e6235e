"""Messages that are popped or replaced while Redis has the session: nothing of them comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.history import History
from holdfast.engines.hybrid.log import HybridLog
from holdfast.engines.hybrid.transcripts import HybridTranscripts
from holdfast.engines.postgres.durable_log import PostgresDurableLog
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.engines.redis.hot_log import RedisHotLog
from holdfast.values.content import ChatMessage
from holdfast.values.errors import UnavailableError, VersionConflictError
from holdfast.values.failpoints import failpoint
from holdfast.values.ids import new_ref
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import ANA, flush, gaps, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


def another_process(hybrid: HybridHarness) -> History:
    """The transcripts of a process with a memory of its own, on the same servers."""
    tenant = hybrid._prefix + "default"
    log = HybridLog(
        RedisHotLog(hybrid.redis, tenant=tenant, writer=new_ref()),
        PostgresDurableLog(hybrid.engine, tenant=tenant),
        hybrid.consolidator,
        tenant=tenant,
        level="hot",
    )
    return History(HybridTranscripts(log, PostgresTranscripts(hybrid.engine, tenant=tenant)))


async def texts(store: Any) -> list[str]:
    return [one.text for one in await store.get_messages(ANA, session_id="s1")]


async def say(store: Any, *said: str) -> None:
    await store.append_many(ANA, [ChatMessage.user(one) for one in said], session_id="s1")


@pytest.mark.parametrize("flushed", [False, True])
async def test_a_process_that_remembers_a_popped_message_does_not_write_it_again(
    hybrid: HybridHarness, flushed: bool
) -> None:
    mine, theirs = hybrid.store("history"), another_process(hybrid)
    await say(mine, "first")
    await say(theirs, "second")
    if flushed:
        await flush(hybrid)
    popped = await mine.pop(ANA, session_id="s1")
    assert popped.text == "second"
    assert await texts(theirs) == await texts(mine) == ["first"]
    await say(mine, "third")
    assert await texts(theirs) == await texts(mine) == ["first", "third"]
    await say(theirs, "fourth")
    await flush(hybrid)
    assert [one.to_message().text for one in await stored(hybrid)] == ["first", "third", "fourth"]
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await texts(theirs) == await texts(mine) == ["first", "third", "fourth"]
    assert await gaps(hybrid) == 0


async def test_a_process_that_remembers_a_replaced_message_does_not_write_it_again(
    hybrid: HybridHarness,
) -> None:
    mine, theirs = hybrid.store("history"), another_process(hybrid)
    await say(theirs, "first", "second", "third")
    new = [ChatMessage.system("a summary")]
    where = {"session_id": "s1", "after_seq": 0, "messages": new}
    assert await mine.replace_tail(ANA, expected_last_seq=3, **where) == 4
    await say(mine, "fourth")
    assert await texts(theirs) == await texts(mine) == ["a summary", "fourth"]
    await flush(hybrid)
    assert len(await stored(hybrid)) == 2


async def test_an_append_between_the_read_and_the_replacement_is_a_conflict(
    hybrid: HybridHarness,
) -> None:
    mine, theirs = hybrid.store("history"), another_process(hybrid)
    await say(mine, "first", "second")
    await say(theirs, "not flushed, and not seen")
    where = {"session_id": "s1", "after_seq": 0, "messages": []}
    with pytest.raises(VersionConflictError) as caught:
        await mine.replace_tail(ANA, expected_last_seq=2, **where)
    assert caught.value.actual == 3
    assert len(await texts(mine)) == 3


async def test_poppers_and_appenders_of_two_processes_lose_nothing_and_double_nothing(
    hybrid: HybridHarness,
) -> None:
    mine, theirs = hybrid.store("history"), another_process(hybrid)
    await say(mine, "start")
    popped, *_ = await asyncio.gather(
        asyncio.gather(*(one.pop(ANA, session_id="s1") for one in (mine, theirs) * 5)),
        *(
            say(one, f"{name} {at}")
            for at in range(10)
            for one, name in ((mine, "m"), (theirs, "t"))
        ),
    )
    gone = [one.text for one in popped if one is not None]
    left = await texts(mine)
    assert sorted([*gone, *left]) == sorted(
        ["start", *(f"{name} {at}" for at in range(10) for name in "mt")]
    )
    await flush(hybrid)
    assert [one.to_message().text for one in await stored(hybrid)] == left
    assert await texts(theirs) == left


async def test_without_redis_nothing_is_popped(hybrid: HybridHarness) -> None:
    store = hybrid.store("history")
    await say(store, "first")
    hybrid.breaker.down_until = float("inf")
    with pytest.raises(UnavailableError):
        await store.pop(ANA, session_id="s1")
    with pytest.raises(UnavailableError):
        await store.replace_tail(
            ANA, session_id="s1", after_seq=0, messages=[], expected_last_seq=1
        )
    hybrid.breaker.down_until = 0.0
    assert await texts(store) == ["first"]


async def test_a_pop_whose_end_redis_does_not_hear_of_returns_the_message(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("history")
    await say(store, "first", "second")

    def down() -> None:
        hybrid.breaker.down_until = float("inf")

    with failpoint("edit.after_durable", down):
        popped = await store.pop(ANA, session_id="s1")
    assert popped.text == "second"
    hybrid.breaker.down_until = 0.0
    # The lock was not released; it would expire by itself.
    [lock] = await hybrid.redis.command("", "keys", "hf:*:warm:s1", safe=True)
    assert valkey().ask(f"DEL {lock.decode()}") == ":1"
    assert await texts(store) == ["first"]
    await say(store, "third")
    assert await texts(store) == ["first", "third"]


async def test_a_process_that_remembers_a_deleted_session_does_not_write_it_again(
    hybrid: HybridHarness,
) -> None:
    mine, theirs = hybrid.store("history"), another_process(hybrid)
    episodes = hybrid.store("episodes")
    await say(mine, "first")
    await say(theirs, "second")
    assert await episodes.delete_session("s1")
    assert await texts(theirs) == await texts(mine) == []
    assert await episodes.get_session("s1") is None
    await flush(hybrid)
    assert await stored(hybrid) == []
    await say(mine, "third")
    assert await texts(theirs) == await texts(mine) == ["third"]
    await flush(hybrid)
    [left] = await stored(hybrid)
    assert (left.to_message().text, left.seq) == ("third", 3)
    assert (await episodes.get_session("s1")) is not None
    assert await gaps(hybrid) == 0


async def test_a_session_that_redis_lost_is_deleted_and_stays_deleted(
    hybrid: HybridHarness,
) -> None:
    mine, theirs = hybrid.store("history"), another_process(hybrid)
    await say(theirs, "first")
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await hybrid.store("episodes").delete_session("s1")
    assert await texts(theirs) == await texts(mine) == []
    await say(mine, "second")
    assert await texts(theirs) == await texts(mine) == ["second"]


async def test_what_was_cleared_and_waits_does_not_keep_a_session_from_being_changed(
    hybrid: HybridHarness,
) -> None:
    history = hybrid.store("history")
    await say(history, "kept")
    await history.append(ANA, ChatMessage.user("gone"), session_id="s1", run_id="r1")
    await history.clear_run(ANA, session_id="s1", run_id="r1")
    assert (await history.pop(ANA, session_id="s1")).text == "kept"
    assert await texts(history) == []
