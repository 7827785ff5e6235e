"""The promises of ``ScheduleStore``."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from holdfast.contracts.cron import Cron
from holdfast.contracts.schedules import ScheduleStore
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.schedules import Missed

CONTRACT = "schedules"
pytestmark = pytest.mark.asyncio(loop_scope="session")
HOUR = 3600.0
HOURLY: dict[str, Any] = {"agent": "writer", "message": "Tides of Brest?"}


@pytest_asyncio.fixture(autouse=True)
async def _held_clock(harness: Harness) -> None:
    """The time moves only where a test moves it, so that no tick comes by itself."""
    await harness.hold_clock()


def _at(task: Any) -> datetime:
    return datetime.fromisoformat(task.metadata["scheduled_at"])


async def _hourly(store: ScheduleStore, schedule_id: str = "tides", **more: Any) -> Any:
    return await store.create(schedule_id, "0 * * * *", **(HOURLY | more))


async def _run(store: ScheduleStore) -> list[Any]:
    return await store.run_due()


async def test_a_schedule_comes_back_as_it_was_created(store: ScheduleStore) -> None:
    made = await store.create(
        "tides",
        "0 9  * * mon-fri",
        timezone="Europe/Paris",
        agent="team/writer",
        message=ChatMessage.user("Tides of Brest?"),
        missed="all",
        missed_limit=7,
        grace_seconds=5,
        owner="ana",
        session_id="c1",
        metadata={"port": "Brest"},
        max_attempts=2,
    )
    found = await store.get("tides", owner="ana")
    assert found == made
    assert (made.cron, made.timezone, made.message.text) == (
        *("0 9 * * mon-fri", "Europe/Paris", "Tides of Brest?"),
    )
    assert (str(made.agent), made.owner, made.session_id) == ("team/writer", "ana", "c1")
    assert (made.missed, made.missed_limit, made.grace_seconds) == (Missed.ALL, 7, 5)
    assert (made.metadata, made.max_attempts, made.paused) == ({"port": "Brest"}, 2, False)
    assert made.next_run_at == Cron(made.cron, made.timezone).next_tick(made.created_at)
    assert (made.last_run_at, made.last_task_id) == (None, "")


async def test_an_unknown_schedule_is_none(store: ScheduleStore) -> None:
    assert await store.get("tides") is None
    assert await store.delete("tides") is False
    for call in (store.pause, store.resume, store.next_runs):
        with pytest.raises(NotFoundError):
            await call("tides")


async def test_the_same_schedule_created_again_is_the_one_that_is_there(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, metadata={"a": 1, "b": 2})
    await harness.elapse(HOUR)
    assert await _hourly(store, metadata={"b": 2, "a": 1}) == made


async def test_a_schedule_that_is_there_with_other_content_is_refused(
    store: ScheduleStore,
) -> None:
    made = await _hourly(store)
    with pytest.raises(ConflictError, match="upsert"):
        await _hourly(store, message="other")
    assert await store.list() == [made]


async def test_upsert_replaces_the_content_and_keeps_a_pause(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store)
    await store.pause("tides")
    await harness.elapse(HOUR)
    changed = await store.upsert("tides", "30 * * * *", agent="reader", message="other")
    assert (changed.cron, str(changed.agent), changed.message.text) == (
        *("30 * * * *", "reader", "other"),
    )
    assert changed.paused
    assert await store.list() == [changed]


async def test_upsert_of_the_same_content_changes_nothing(store: ScheduleStore) -> None:
    made = await store.upsert("tides", "0 * * * *", agent="writer", message="Tides of Brest?")
    assert await store.upsert("tides", "0 * * * *", agent="writer", message="Tides of Brest?") == (
        made
    )


async def test_10_concurrent_creates_of_one_schedule_make_one(store: ScheduleStore) -> None:
    made = await asyncio.gather(*(_hourly(store) for _ in range(10)))
    assert await store.list() == made[:1]
    assert all(one == made[0] for one in made)


async def test_schedules_are_listed_by_owner_and_id(store: ScheduleStore) -> None:
    for owner, name in (("", "b"), ("zoe", "a"), ("", "a"), ("ana", "c")):
        await _hourly(store, name, owner=owner)
    found = [(one.owner, one.id) for one in await store.list()]
    assert found == [("", "a"), ("", "b"), ("ana", "c"), ("zoe", "a")]


async def test_pages_of_schedules_follow_each_other_without_a_gap_or_a_repeat(
    store: ScheduleStore,
) -> None:
    for name in "abcde":
        await _hourly(store, name)
    first = await store.list(limit=2)
    second = await store.list(limit=2, after=first[-1])
    third = await store.list(limit=2, after=second[-1])
    assert [one.id for one in first + second + third] == list("abcde")


async def test_a_limit_of_zero_is_an_empty_list_of_schedules(store: ScheduleStore) -> None:
    await _hourly(store)
    assert await store.list(limit=0) == []


async def test_a_new_schedule_has_no_ticks_before_it_was_created(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store, missed="all")
    assert await _run(store) == []
    await harness.elapse(HOUR)
    assert len(await _run(store)) == 1


async def test_a_tick_makes_one_task_with_its_message_agent_owner_and_time(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, owner="ana", metadata={"port": "Brest"}, max_attempts=2)
    await harness.elapse(HOUR)
    [task] = await _run(store)
    assert (str(task.agent), task.owner, task.max_attempts) == ("writer", "ana", 2)
    assert task.metadata == {
        "port": "Brest",
        "schedule_id": "tides",
        "scheduled_at": made.next_run_at.isoformat(),
    }
    tasks = harness.store("tasks")
    assert (await tasks.get(task.id)).messages[0].text == "Tides of Brest?"
    found = await store.get("tides", owner="ana")
    assert found is not None
    assert (found.last_run_at, found.last_task_id) == (made.next_run_at, task.id)
    assert found.next_run_at == made.next_run_at + timedelta(hours=1)
    assert await _run(store) == []


async def test_a_tick_makes_one_task_however_many_workers_run_it_at_once(
    store: ScheduleStore, harness: Harness
) -> None:
    for name in "abc":
        await _hourly(store, name)
    await _run(store)
    await harness.elapse(HOUR)
    made = await asyncio.gather(*(_run(store) for _ in range(8)))
    ticks = [task.metadata["schedule_id"] for tasks in made for task in tasks]
    assert sorted(ticks) == ["a", "b", "c"]
    assert len((await harness.store("tasks").list()).tasks) == 3


async def test_each_tick_of_many_runs_makes_one_task_and_none_is_lost(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await store.create("often", "*/7 * * * *", missed="all", missed_limit=1000, **HOURLY)
    done: list[datetime] = []
    # Spans that end before, at and after ticks, and some with many of them.
    for seconds in (60, 419, 421, 1, 5 * HOUR, 61, 7 * 60, 1, 26 * HOUR, 3, 200):
        await harness.elapse(seconds)
        both = await asyncio.gather(_run(store), _run(store))
        done += [_at(task) for tasks in both for task in tasks]
    [found] = await store.list()
    until = found.next_run_at or made.created_at
    cron = Cron(made.cron, made.timezone)
    expected = itertools.takewhile(lambda tick: tick < until, cron.ticks_after(made.created_at))
    assert sorted(done) == list(expected)
    assert len(done) > 200


async def test_a_clock_that_is_set_back_runs_no_tick_twice(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store, missed="all")
    await harness.elapse(3 * HOUR)
    assert len(await _run(store)) == 3
    await harness.turn_back(2 * HOUR)
    assert await _run(store) == []
    await harness.elapse(2 * HOUR)
    assert await _run(store) == []
    await harness.elapse(HOUR)
    assert len(await _run(store)) == 1
