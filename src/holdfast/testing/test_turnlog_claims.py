"""What every ``TurnLog`` promises about consumers: claims, take-overs, acknowledgements."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.kernel.core.errors import InvalidInputError
from holdfast.kernel.storage.turnlog import Backlog, ClaimedTurn, TurnEntry, TurnLog
from holdfast.testing.harness import Harness

CONTRACT = "turn_log"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _append(store: TurnLog, *names: Any, session: str = "s1") -> None:
    for name in names:
        await store.append(TurnEntry(f"e{name}", session, b"payload"))


def _names(turns: list[ClaimedTurn]) -> list[str]:
    return [turn.entry.event_id for turn in turns]


async def test_claim_hands_out_entries_in_the_order_of_the_log(store: TurnLog) -> None:
    for n in range(5):
        await _append(store, f"{n} of s1")
        await _append(store, f"{n} of s2", session="s2")
    turns = await store.claim("w1", limit=3) + await store.claim("w2", limit=99)
    for session in ("s1", "s2"):
        mine = [turn for turn in turns if turn.entry.session_id == session]
        assert _names(mine) == [f"e{n} of {session}" for n in range(5)]
        assert [turn.position.seq for turn in mine] == [1, 2, 3, 4, 5]


async def test_claim_of_an_empty_log_is_an_empty_list(store: TurnLog) -> None:
    assert await store.claim("w1") == []


async def test_claim_takes_at_most_limit(store: TurnLog) -> None:
    await _append(store, *range(5))
    assert [len(await store.claim("w1", limit=2)) for _ in range(4)] == [2, 2, 1, 0]
    assert _names(await store.claim("w2", limit=3, min_idle_seconds=0)) == ["e0", "e1", "e2"]


async def test_a_limit_of_zero_is_an_empty_result_and_a_negative_one_is_refused(
    store: TurnLog,
) -> None:
    await _append(store, 1)
    assert await store.claim("w1", limit=0) == []
    with pytest.raises(InvalidInputError) as caught:
        await store.claim("w1", limit=-1)
    assert caught.value.field == "limit"
    assert (await store.pending()).claimed == 0


async def test_an_entry_is_claimed_by_one_consumer_at_a_time(store: TurnLog) -> None:
    await _append(store, *range(40))
    batches = await asyncio.gather(*(store.claim(f"w{n}", limit=5) for n in range(10)))
    claimed = [name for batch in batches for name in _names(batch)]
    assert sorted(claimed) == sorted(f"e{n}" for n in range(40))


async def test_what_was_not_acknowledged_is_claimed_again_after_min_idle_seconds(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, 1, 2)
    first = await store.claim("dead")
    await harness.elapse(30)
    assert await store.claim("w1") == await store.claim("dead") == []
    await harness.elapse(31)
    again = await store.claim("w1")
    assert [turn.id for turn in again] == [turn.id for turn in first]
    assert [turn.entry for turn in again] == [turn.entry for turn in first]
    await harness.elapse(30)
    assert await store.claim("w2") == []
    await harness.elapse(31)
    assert _names(await store.claim("w2", min_idle_seconds=50)) == ["e1", "e2"]


async def test_what_a_dead_consumer_left_comes_before_what_is_new(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, 1, 2, 3)
    await store.claim("dead", limit=2)
    await harness.elapse(61)
    await _append(store, 4)
    assert _names(await store.claim("w1", limit=3)) == ["e1", "e2", "e3"]
    assert _names(await store.claim("w1", limit=3)) == ["e4"]


async def test_a_min_idle_seconds_of_zero_takes_over_at_once(store: TurnLog) -> None:
    await _append(store, 1, 2)
    await store.claim("w1")
    assert _names(await store.claim("w2", min_idle_seconds=0)) == ["e1", "e2"]
    assert _names(await store.claim("w2", min_idle_seconds=0)) == ["e1", "e2"]


@pytest.mark.parametrize("bad", [-1, float("nan"), "60", None, False])
async def test_a_negative_min_idle_seconds_is_refused(store: TurnLog, bad: Any) -> None:
    await _append(store, 1)
    with pytest.raises(InvalidInputError) as caught:
        await store.claim("w1", min_idle_seconds=bad)
    assert caught.value.field == "min_idle_seconds"
    assert (await store.pending()).claimed == 0


async def test_each_claim_counts_one_more_delivery(store: TurnLog) -> None:
    await _append(store, 1)
    counts = [
        turn.deliveries for _ in range(3) for turn in await store.claim("w1", min_idle_seconds=0)
    ]
    await _append(store, 2)
    turns = await store.claim("w1", min_idle_seconds=0)
    assert counts == [1, 2, 3]
    assert [turn.deliveries for turn in turns] == [4, 1]


async def test_acknowledge_removes_entries_and_counts_them(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, 1, 2, 3)
    one, two, _ = await store.claim("w1")
    assert await store.acknowledge([two.id, one.id]) == 2
    await harness.elapse(61)
    assert _names(await store.claim("w1")) == ["e3"]


async def test_acknowledge_is_idempotent(store: TurnLog) -> None:
    await _append(store, 1, 2)
    one, two = await store.claim("w1")
    assert await store.acknowledge([one.id, one.id, "nothing"]) == 1
    assert await store.acknowledge([one.id]) == 0
    assert await store.acknowledge([]) == 0
    assert await store.acknowledge([one.id, two.id]) == 1


async def test_a_late_acknowledgement_of_an_entry_that_was_taken_over_still_counts(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, 1)
    (late,) = await store.claim("slow")
    await harness.elapse(61)
    (taken,) = await store.claim("w1")
    assert await store.acknowledge([late.id]) == 1
    assert await store.acknowledge([taken.id]) == 0
    assert (await store.pending()).total == 0


async def test_nothing_expires_before_it_is_acknowledged(harness: Harness, store: TurnLog) -> None:
    await _append(store, 1, 2)
    await store.claim("dead", limit=1)
    await harness.elapse(10**8)
    assert _names(await store.claim("w1")) == ["e1", "e2"]


async def test_pending_counts_what_is_claimed_and_what_is_not(store: TurnLog) -> None:
    assert await store.pending() == Backlog(0, 0, 0.0)
    await _append(store, 1, 2, 3)
    one, _ = await store.claim("w1", limit=2)
    backlog = await store.pending()
    assert (backlog.unclaimed, backlog.claimed, backlog.total) == (1, 2, 3)
    await store.acknowledge([one.id])
    backlog = await store.pending()
    assert (backlog.unclaimed, backlog.claimed, backlog.total) == (1, 1, 2)


async def test_pending_tells_the_age_of_the_oldest_entry(harness: Harness, store: TurnLog) -> None:
    await _append(store, 1)
    await harness.elapse(300)
    assert (await store.pending()).oldest_age_seconds >= 300
    await _append(store, 2)
    (old,) = await store.claim("w1", limit=1)
    assert (await store.pending()).oldest_age_seconds >= 300
    await store.acknowledge([old.id])
    assert (await store.pending()).oldest_age_seconds < 300
    await store.acknowledge([turn.id for turn in await store.claim("w1")])
    assert (await store.pending()).oldest_age_seconds == 0
