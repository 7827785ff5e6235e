"""What a worker costs the database while there is nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

import holdfast
from holdfast import App, ChatMessage, Settings, State, TaskContext, Worker
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.listener import CHECK_SECONDS
from holdfast.engines.postgres.queries import load
from holdfast.runtime.rounds import Rounds
from holdfast.runtime.ticks import LOOK_SECONDS
from holdfast.runtime.worker import FIRST_LOOK_SECONDS, IDLE_SECONDS
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
SURVEY, ECHO = load("ledger_work")["survey"], load("channel")["echo"]
TICKS = load("schedules")["scheduled"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is sent to Postgres, in order."""
    log: list[str] = []
    fetch = Postgres._fetch

    async def counted(self: Postgres, sql: Any, *args: Any, safe: bool) -> Sequence[Any]:
        log.append(sql)
        return await fetch(self, sql, *args, safe=safe)

    monkeypatch.setattr(Postgres, "_fetch", counted)
    return log


def _app(ran: asyncio.Event) -> App:
    app = App("writer")

    @app.handler
    async def write(task: TaskContext) -> None:
        del task
        ran.set()

    return app


async def _until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


class _Clock:
    """The clock of ``Rounds``: it stands still until a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("holdfast.runtime.rounds.time", self)

    def monotonic(self) -> float:
        return self.now


async def test_an_idle_worker_sends_one_query_before_each_pause_and_a_notice_wakes_it(
    database: str, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert IDLE_SECONDS > 5
    ran = asyncio.Event()
    settings = Settings(max_connections=6)
    pauses: list[tuple[float, list[str]]] = []
    pause = Worker._pause

    async def counted(self: Worker, seconds: float) -> None:
        pauses.append((seconds, list(sent)))
        await pause(self, seconds)

    monkeypatch.setattr(Worker, "_pause", counted)
    _Clock(monkeypatch)  # what the other jobs of the worker know never gets too old
    async with (
        holdfast.open(database, tenant=new_ref(), settings=settings) as state,
        holdfast.open(database, tenant=state.tenant, settings=settings) as client,
    ):
        worker = Worker(_app(ran), state, tenants=[state.tenant], recovery_seconds=0.05)
        run = asyncio.create_task(worker.run())
        await _until(lambda: state.ops.work.notified and len(pauses) > 1)
        begun = len(pauses) + 1
        await _until(lambda: len(pauses) >= begun + 3)
        for (_, before), (seconds, after) in pairwise(pauses[begun:]):
            # Its other jobs ran many times meanwhile.
            assert set(after[len(before) :]) <= {SURVEY, ECHO, TICKS}
            assert after[len(before) :].count(SURVEY) == 1
            assert seconds == 1.0, "the longest pause that recovery_seconds and poll_seconds allow"
        await client.tasks.submit("writer", ChatMessage.user("hello"))
        async with asyncio.timeout(60):
            await ran.wait()
        worker.stop()
        await run


async def test_a_task_without_a_handler_does_not_delay_the_claim_of_a_new_task(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, pauses, claimed_after = asyncio.Event(), list[float](), list[float]()
    armed: list[bool] = []
    pause, claim = Worker._pause, type(state.tasks).claim

    async def counted(self: Worker, seconds: float) -> None:
        pauses.append(seconds)
        await pause(self, seconds)

    async def skipping(self: Any, *args: Any, **how: Any) -> Any:
        if not armed:
            return await claim(self, *args, **how)
        if armed.pop():
            return []  # as when the new row is locked
        claimed_after.append(pauses[-1])
        return await claim(self, *args, **how)

    monkeypatch.setattr(Worker, "_pause", counted)
    monkeypatch.setattr(type(state.tasks), "claim", skipping)
    await state.tasks.submit("nobody", ChatMessage.user("waits for a worker with a handler"))
    worker = Worker(_app(ran), state, tenants=[state.tenant])
    run = asyncio.create_task(worker.run())
    await _until(lambda: state.ops.work.notified and pauses and pauses[-1] > 1)
    armed[:] = [False, True]
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    async with asyncio.timeout(60):
        await ran.wait()
    worker.stop()
    await run
    assert claimed_after == [2 * FIRST_LOOK_SECONDS]


async def test_the_pauses_of_an_idle_process_add_up_to_one_query_in_five_seconds() -> None:
    # What the test above finds between two pauses: each has a pause of its own.
    assert 1 / IDLE_SECONDS + 1 / CHECK_SECONDS + 1 / LOOK_SECONDS <= 1 / 5


async def test_what_a_query_found_is_used_until_it_is_too_old(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(monkeypatch)
    rounds = Rounds(state, [state.tenant], max_age_seconds=5)
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    assert await rounds.tenants("due") == [state.tenant]
    await state.tasks.claim("w1")
    clock.now += 5
    assert await rounds.tenants("due") == [state.tenant]
    clock.now += 0.1
    assert await rounds.tenants("due") == []


async def test_all_that_a_worker_looks_for_is_found_by_one_query(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    survey = type(state.ops.work).survey

    async def counted(self: Any, **how: Any) -> Any:
        nonlocal calls
        calls += 1
        return await survey(self, **how)

    monkeypatch.setattr(type(state.ops.work), "survey", counted)
    rounds = Rounds(state, [state.tenant], max_age_seconds=IDLE_SECONDS)
    assert await rounds.tenants("due", fresh=True) == []
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    assert await rounds.tenants("due", fresh=True) == [state.tenant]
    assert await rounds.tenants("working") == await rounds.tenants("cleanup") == []
    assert await rounds.tenants("uncopied") == []
    assert calls == 2
    [claimed] = await state.tasks.claim("w1")
    assert await rounds.tenants("working", fresh=True) == [state.tenant]
    await state.tasks.transition(claimed.lease, "completed")
    assert await rounds.tenants("uncopied", fresh=True) == [state.tenant]


async def test_a_worker_of_one_tenant_that_got_tasks_claims_again_without_a_query(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveys: list[Any] = []
    survey = type(state.ops.work).survey

    async def counted(self: Any, **how: Any) -> Any:
        surveys.append(how)
        return await survey(self, **how)

    async def claim(_tenant: str, most: int) -> int:
        return len(await state.tasks.claim("w1", limit=most))

    monkeypatch.setattr(type(state.ops.work), "survey", counted)
    rounds = Rounds(state, [state.tenant], max_age_seconds=IDLE_SECONDS)
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    seen = []
    for _ in range(3):
        due = await rounds.due()
        got = await rounds.share(due, lambda: 5, claim)
        seen.append((due, got, len(surveys)))
    tenant = state.tenant
    assert seen == [([tenant], 1, 1), ([tenant], 0, 1), ([], 0, 2)]


async def test_a_survey_knows_when_the_next_task_becomes_due(state: State) -> None:
    work = state.ops.work
    assert (await work.survey(tenants=[state.tenant])).next_due_seconds is None
    await state.tasks.submit("a", ChatMessage.user("x"), run_after=timedelta(hours=2))
    await state.tasks.submit("a", ChatMessage.user("x"), run_after=timedelta(hours=1))
    found = await work.survey(tenants=[state.tenant])
    assert found.tenants("due") == []
    assert found.next_due_seconds is not None
    assert 3500 < found.next_due_seconds <= 3600
    assert (await work.survey(tenants=[])).next_due_seconds is None
    with pytest.raises(holdfast.errors.InvalidInputError, match="tenants"):
        await work.survey(tenants=[""])
