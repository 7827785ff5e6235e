"""The promises of ``ScheduleStore`` about missed ticks, pauses, clock changes and owners."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from holdfast.contracts import schedules
from holdfast.contracts.schedule_runs import run_of
from holdfast.contracts.schedules import ScheduleStore
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.owners import ANY_OWNER

CONTRACT = "schedules"
ODD_ZONES = (
    *("", "Mars/Base", "../../etc/passwd", "Europe", "x" * 999),
    *("localtime", "posixrules", "right/UTC", "posix/UTC"),
)
pytestmark = pytest.mark.asyncio(loop_scope="session")
HOUR = 3600.0
HOURLY: dict[str, Any] = {"agent": "writer", "message": "Tides of Brest?"}


@pytest_asyncio.fixture(autouse=True)
async def _held_clock(harness: Harness) -> None:
    """The time moves only where a test moves it, so that no tick comes by itself."""
    await harness.hold_clock()


async def _hourly(store: ScheduleStore, schedule_id: str = "tides", **more: Any) -> Any:
    return await store.create(schedule_id, "0 * * * *", **(HOURLY | more))


async def _ticks(store: ScheduleStore) -> list[datetime]:
    made = await store.run_due()
    return [datetime.fromisoformat(task.metadata["scheduled_at"]) for task in made]


async def _go_to(store: ScheduleStore, harness: Harness, when: datetime) -> None:
    """Move the clock to a time."""
    probe = await store.create("clock", "0 0 * * *", agent="clock", message="tick")
    await store.delete("clock")
    await harness.elapse((when - probe.created_at).total_seconds())


async def test_missed_ticks_are_skipped_on_request_beyond_the_grace_time(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, missed="skip", grace_seconds=60)
    await harness.elapse((made.next_run_at - made.created_at).total_seconds() + 61)
    assert await _ticks(store) == []
    await harness.elapse(5 * HOUR - 1)
    assert await _ticks(store) == [made.next_run_at + timedelta(hours=5)]
    assert await _ticks(store) == []


async def test_missed_ticks_make_one_task_on_request_for_the_last_of_them(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, missed="once")
    await harness.elapse(5 * HOUR)
    assert await _ticks(store) == [made.next_run_at + timedelta(hours=4)]
    assert await _ticks(store) == []


async def test_missed_ticks_make_a_task_each_on_request_up_to_the_limit(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, missed="all", missed_limit=3)
    await harness.elapse(2 * HOUR)
    first = made.next_run_at
    assert await _ticks(store) == [first, first + timedelta(hours=1)]
    await harness.elapse(5 * HOUR)
    assert await _ticks(store) == [first + timedelta(hours=one) for one in (4, 5, 6)]
    assert await _ticks(store) == []


async def test_a_paused_schedule_makes_no_tasks(store: ScheduleStore, harness: Harness) -> None:
    await _hourly(store)
    paused = await store.pause("tides")
    assert paused.paused
    assert paused.next_run_at is None
    await harness.elapse(HOUR)
    assert await _ticks(store) == []
    assert len(await store.next_runs("tides", 2)) == 2


async def test_a_resumed_schedule_makes_no_tasks_for_the_time_of_its_pause(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store, missed="all")
    await store.pause("tides")
    await harness.elapse(3 * HOUR)
    resumed = await store.resume("tides")
    assert await _ticks(store) == []
    await harness.elapse(HOUR)
    assert await _ticks(store) == [resumed.next_run_at]


async def test_a_pause_or_resume_that_is_repeated_has_no_effect(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, missed="all")
    await harness.elapse(HOUR)
    assert await store.resume("tides") == made
    assert len(await _ticks(store)) == 1
    paused = await store.pause("tides")
    await harness.elapse(HOUR)
    assert await store.pause("tides") == paused


async def test_a_deleted_schedule_makes_no_tasks_and_its_tasks_stay(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store)
    await harness.elapse(HOUR)
    [task] = await store.run_due()
    assert await store.delete("tides") is True
    await harness.elapse(HOUR)
    assert await _ticks(store) == []
    assert await store.list() == []
    assert await harness.store("tasks").get(task.id) is not None


async def test_a_schedule_that_is_created_again_after_a_delete_makes_tasks_of_its_own(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store)
    await harness.elapse(HOUR)
    [first] = await store.run_due()
    await store.delete("tides")
    await harness.turn_back(HOUR)
    await _hourly(store, message="other")
    await harness.elapse(HOUR)
    [second] = await store.run_due()
    assert second.id != first.id
    assert second.metadata == first.metadata


async def test_a_change_takes_effect_at_ticks_from_then_on(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, missed="all")
    await harness.elapse(HOUR)
    await store.upsert("tides", "0 * * * *", missed="all", agent="reader", message="other")
    [task] = await store.run_due()
    assert str(task.agent) == "reader"
    await harness.elapse(2 * HOUR)
    changed = await store.upsert("tides", "30 * * * *", missed="all", agent="a", message="other")
    assert await _ticks(store) == []
    await harness.elapse(HOUR)
    assert await _ticks(store) == [changed.next_run_at]
    assert changed.next_run_at is not None
    assert changed.next_run_at.minute == 30
    assert made.version < changed.version


SPRING = datetime(2027, 3, 28, tzinfo=UTC)
"""At 1:00 UTC clocks in Paris go from 2:00 to 3:00."""
AUTUMN = datetime(2027, 10, 31, tzinfo=UTC)
"""At 1:00 UTC clocks in Paris go from 3:00 to 2:00."""


async def test_a_tick_that_a_clients_clock_change_skips_runs_after_the_gap(
    store: ScheduleStore, harness: Harness
) -> None:
    await _go_to(store, harness, SPRING)
    paris: dict[str, Any] = {"timezone": "Europe/Paris", "missed": "all", **HOURLY}
    await store.create("nightly", "30 2 * * *", **paris)
    await store.create("often", "*/30 * * * *", **paris)
    await harness.elapse(2 * HOUR)
    made = [(one.metadata["schedule_id"], one) for one in await store.run_due()]
    found = {
        name: [one.metadata["scheduled_at"][11:16] for of, one in made if of == name]
        for name in ("nightly", "often")
    }
    assert found == {"nightly": ["01:00"], "often": ["00:30", "01:00", "01:30", "02:00"]}
    [tomorrow] = await store.next_runs("nightly", 1)
    assert tomorrow == SPRING + timedelta(days=1, minutes=30)


async def test_a_tick_that_a_clients_clock_change_repeats_runs_once(
    store: ScheduleStore, harness: Harness
) -> None:
    await _go_to(store, harness, AUTUMN - timedelta(hours=1))
    paris: dict[str, Any] = {"timezone": "Europe/Paris", "missed": "all", **HOURLY}
    await store.create("nightly", "30 2 * * *", **paris)
    await store.create("often", "*/30 * * * *", **paris)
    found: dict[str, list[str]] = {"nightly": [], "often": []}
    # The worker looks in the first and in the second of the two hours that have the same name.
    for minutes in (80, 15, 40, 15, 30):
        await harness.elapse(minutes * 60)
        for one in await store.run_due():
            found[one.metadata["schedule_id"]].append(one.metadata["scheduled_at"][11:16])
    assert found["nightly"] == ["00:30"]
    assert found["often"] == ["23:30", "00:00", "00:30", "01:00", "01:30", "02:00"]


async def test_next_runs_gives_the_ticks_to_come(store: ScheduleStore, harness: Harness) -> None:
    await _go_to(store, harness, SPRING - timedelta(days=1))
    await store.create("daily", "0 9 * * *", timezone="Europe/Paris", **HOURLY)
    assert await store.next_runs("daily", 3) == [
        SPRING - timedelta(hours=16),
        SPRING + timedelta(hours=7),
        SPRING + timedelta(hours=31),
    ]
    assert await store.next_runs("daily", 0) == []
    with pytest.raises(InvalidInputError, match="count"):
        await store.next_runs("daily", 1001)


async def test_a_schedule_with_a_session_id_makes_all_its_tasks_in_that_context(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store, missed="all", session_id="c1")
    await _hourly(store, "alone", missed="all")
    await harness.elapse(2 * HOUR)
    contexts = [(one.metadata["schedule_id"], one.session_id) for one in await store.run_due()]
    assert sorted(one for one in contexts if one[0] == "tides") == [("tides", "c1")] * 2
    assert len({one for one in contexts if one[0] == "alone"}) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        *({"cron": one} for one in ("", "* * * *", "0 0 0 * * *", "61 * * * *", "0 0 31 2 *")),
        *({"cron": one} for one in ("@daily", "0 9 * * funday", "1," * 150 + "1 * * * *")),
        *({"timezone": one} for one in ODD_ZONES),
        *({"missed": "sometimes"}, {"missed_limit": 0}, {"missed_limit": 1001}),
        *({"grace_seconds": 0}, {"max_attempts": 0}, {"owner": "holdfast.x"}),
        *({"schedule_id": "holdfast.x"}, {"session_id": "holdfast.x"}),
    ],
    ids="".join,
)
async def test_an_expression_a_time_zone_or_a_policy_that_is_none_is_refused(
    store: ScheduleStore, harness: Harness, wrong: dict[str, Any]
) -> None:
    empty = await harness.raw(CONTRACT)
    given: dict[str, Any] = {"schedule_id": "tides", "cron": "0 9 * * *", **HOURLY, **wrong}
    for call in (store.create, store.upsert):
        with pytest.raises(InvalidInputError) as caught:
            await call(**given)
        assert caught.value.field in wrong
    assert await harness.raw(CONTRACT) == empty


async def test_another_owners_schedule_is_not_found_on_any_path(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store, owner="ana")
    for other in ("", "bob"):
        assert await store.get("tides", owner=other) is None
        assert await store.delete("tides", owner=other) is False
        assert await store.list(owner=other) == []
        for call in (store.pause, store.resume, store.next_runs):
            with pytest.raises(NotFoundError):
                await call("tides", owner=other)
    await _hourly(store, owner="bob", message="other")
    assert await store.list(owner="ana") == [made]
    await harness.elapse(HOUR)
    assert {task.owner for task in await store.run_due()} == {"ana", "bob"}


async def test_the_operator_lists_the_schedules_of_all_owners(store: ScheduleStore) -> None:
    for owner in ("ana", "bob", ""):
        await _hourly(store, owner=owner)
    assert [one.owner for one in await store.list(owner=ANY_OWNER)] == ["", "ana", "bob"]


async def test_one_tenant_never_sees_anothers_schedules(harness: Harness) -> None:
    acme, other = harness.store(CONTRACT, tenant="acme"), harness.store(CONTRACT, tenant="other")
    await _hourly(acme)
    assert await other.get("tides") is None
    assert await other.list() == []
    assert await other.delete("tides") is False
    await harness.elapse(HOUR)
    assert await other.run_due() == []
    [task] = await acme.run_due()
    assert await harness.store("tasks", tenant="other").get(task.id) is None


async def test_a_client_cannot_submit_a_task_under_the_key_of_a_tick(
    store: ScheduleStore, harness: Harness
) -> None:
    await _hourly(store)
    await harness.elapse(HOUR)
    [task] = await store.run_due()
    assert task.submit_key.startswith("holdfast.")
    tasks = harness.store("tasks")
    with pytest.raises(InvalidInputError, match="submit_key"):
        await tasks.submit("writer", ChatMessage.user("mine"), submit_key=task.submit_key)
    await tasks.cancel(task.id)
    with pytest.raises(InvalidInputError, match="submit_key"):
        await tasks.retry(task.id, submit_key=task.submit_key)


async def test_a_schedule_is_still_there_after_a_reopen(
    store: ScheduleStore, harness: Harness
) -> None:
    made = await _hourly(store)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.list() == [made]
    await harness.elapse(HOUR)
    assert len(await again.run_due()) == 1


async def test_an_owner_has_at_most_1000_schedules(
    store: ScheduleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert schedules.MAX_SCHEDULES == 1000
    monkeypatch.setattr(schedules, "MAX_SCHEDULES", 3)
    calls = [_hourly(store, f"s{at}", owner="ana") for at in range(6)]
    made = await asyncio.gather(*calls, return_exceptions=True)
    refused = [one for one in made if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [ConflictError] * 3
    assert "owner 'ana' has 3 schedules" in str(refused[0])
    kept = await store.list(owner="ana")
    assert len(kept) == 3
    # What is there can be stored again, and other owners have room.
    await store.upsert(kept[0].id, "0 9 * * *", owner="ana", **HOURLY)
    with pytest.raises(ConflictError):
        await store.upsert("more", "0 9 * * *", owner="ana", **HOURLY)
    await _hourly(store, owner="ben")
    await store.delete(kept[0].id, owner="ana")
    await _hourly(store, "again", owner="ana")


async def test_a_schedule_that_fails_is_tried_again_later_and_holds_up_no_other(
    store: ScheduleStore, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _hourly(store, "broken", missed="all")
    made = await _hourly(store, "works", missed="all")

    def failing(stored: Any, now: datetime) -> Any:
        if stored.draft.id == "broken":
            raise InvalidInputError("timezone", "is not known here")
        return run_of(stored, now)

    monkeypatch.setattr(schedules, "run_of", failing)
    await harness.elapse((made.next_run_at - made.created_at).total_seconds())
    # Both are due, and one call takes one: the broken one is the longest due.
    for _ in range(2):
        try:
            await store.run_due(limit=1)
        except InvalidInputError:
            continue
    works = await store.get("works")
    assert works is not None
    assert works.last_run_at == made.next_run_at
    assert await store.run_due() == []
    # Nothing of it is lost: it is due again, and runs all its ticks.
    monkeypatch.setattr(schedules, "run_of", run_of)
    await harness.elapse(61)
    assert await _ticks(store) == [made.next_run_at]
