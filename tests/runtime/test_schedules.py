"""Schedules that an app declares, and workers that run their ticks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import holdfast
from holdfast import App, State, TaskContext, Worker
from holdfast.contracts.schedules import Schedules
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.schedules import InMemorySchedules
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.errors import (
    AlreadyExistsError,
    ConfigError,
    InvalidInputError,
    NotSupportedError,
    UnavailableError,
)
from holdfast.runtime.ticks import LOOK_SECONDS, RETRY_SECONDS, Ticks
from holdfast.spi.schedules import ScheduleKey
from holdfast.values.clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _app() -> App:
    app = App("reporter")

    @app.schedule("0 * * * *", missed="all", metadata={"port": "Brest"})
    @app.handler(max_attempts=2)
    async def report(task: TaskContext) -> str:
        return str(task.metadata["scheduled_at"])

    return app


async def test_a_worker_stores_what_the_app_declares_once(state: State) -> None:
    for _ in range(2):
        await _app().run_until_idle(state)
    [found] = await state.schedules.list()
    assert (found.id, str(found.agent), found.max_attempts) == ("report", "reporter", 2)
    assert found.metadata == {"port": "Brest"}


async def test_workers_run_each_tick_once() -> None:
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    async with holdfast.open("memory:", clock=clock) as state:
        await _app().run_until_idle(state)
        clock.advance(3 * 3600)
        await asyncio.gather(*(_app().run_until_idle(state) for _ in range(3)))
        tasks = (await state.tasks.list(messages_limit=1)).tasks
        said = sorted(task.messages[0].text for task in tasks)
        assert said == [f"2030-01-01T0{hour}:00:00+00:00" for hour in (1, 2, 3)]


async def test_a_worker_waits_until_the_next_tick_and_no_longer_than_a_look() -> None:
    clock = ManualClock(datetime(2030, 1, 1, 0, 30, tzinfo=UTC))
    async with holdfast.open("memory:", clock=clock) as state:
        ticks = Ticks(_app(), state, None)
        assert await ticks.run_due() == LOOK_SECONDS
        clock.advance(29 * 60 + 50)
        assert await ticks.run_due() == pytest.approx(10)
        # That of a tenant which the worker does not serve is not waited for.
        assert await Ticks(App("idle"), state, ["acme"]).run_due() == LOOK_SECONDS


async def test_a_notice_wakes_a_worker_that_waits_for_a_later_tick(state: State) -> None:
    app = App("writer")

    @app.handler
    async def write(task: TaskContext) -> None:
        """Nothing."""

    worker = Worker(app, state, tenants=[state.tenant])
    run = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(LOOK_SECONDS / 2):
            made = await state.schedules.create("s1", "0 0 1 1 *", agent="writer", message="go")
            while (found := await state.schedules.get("s1")) == made:
                await asyncio.sleep(0.01)
        # The worker has looked at it: its next tick is known, and nothing is due.
        assert found is not None
        assert found.next_run_at == made.next_run_at
    finally:
        worker.stop()
        await run


async def test_a_schedule_that_is_wrong_is_refused_where_it_is_declared() -> None:
    app = App("writer")
    with pytest.raises(InvalidInputError, match="cron"):
        app.schedule("every day")

    async def write(task: TaskContext) -> None:
        """Nothing."""

    app.schedule("0 0 * * *")(write)
    with pytest.raises(AlreadyExistsError, match="id="):
        app.schedule("0 1 * * *")(write)
    with pytest.raises(ConfigError, match=r"@app\.handler"):
        _ = app.schedules
    app.handler(write)
    assert [one.id for one in app.schedules] == ["write"]


async def test_schedules_are_each_owners_own(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    made = await ana.schedules.create("s1", "0 0 * * *", agent="writer", message="go")
    assert made.owner == "ana"
    assert await ana.schedules.list() == [made]
    assert await bob.schedules.list() == []
    assert await bob.schedules.get("s1") is None
    assert await bob.schedules.delete("s1") is False
    with pytest.raises(InvalidInputError, match="owner"):
        await bob.schedules.get("s1", owner="ana")
    with pytest.raises(NotSupportedError, match=r"schedules\.run_due"):
        await bob.schedules.run_due()
    nobody = state.for_owner("")
    assert await nobody.schedules.list() == []
    assert await state.schedules.list() == [made]


async def test_ticks_of_a_zone_that_is_unknown_here_hold_up_no_others() -> None:
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    engine = InMemory(clock=clock)
    storage = InMemorySchedules(engine)
    schedules = Schedules(storage)
    for name in ("a", "b"):
        await schedules.create(name, "0 * * * *", agent="writer", message="go")
    row = storage._rows[ScheduleKey("", "a")]
    row.stored = row.stored._replace(draft=replace(row.stored.draft, timezone="Mars/Base"))
    clock.advance(3600)
    with pytest.raises(InvalidInputError, match="tzdata"):
        await schedules.run_due()
    [task] = (await Ledger(InMemoryLedger(engine)).list()).tasks
    assert task.metadata["schedule_id"] == "b"


async def test_a_tenant_whose_schedules_fail_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    async with holdfast.open("memory:", clock=clock) as state:
        for tenant in ("aaa", "zzz"):
            await Ticks(_app(), state, [tenant]).run_due()
        clock.advance(3600)
        stores = {name: state.for_tenant(name) for name in ("aaa", "zzz")}
        monkeypatch.setattr(Ticks, "_stores", lambda _self, tenant: stores[tenant])
        broken, run_due = stores["aaa"].schedules, Schedules.run_due

        async def failing(self: Schedules, **how: int) -> object:
            if self is broken:
                raise UnavailableError("postgres", "gone")
            return await run_due(self, **how)

        monkeypatch.setattr(Schedules, "run_due", failing)
        assert await Ticks(App("idle"), state, None).run_due() == RETRY_SECONDS
        assert (await state.for_tenant("zzz").tasks.list(count=True)).total == 1
