"""Tenants are served fairly, and the limits of handlers hold across workers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import App, ChatMessage, State, TaskContext, Worker
from holdfast.errors import InvalidInputError
from holdfast.runtime.rounds import Rounds
from holdfast.values.ids import new_ref
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.new_task import NewTask
from tests.engines.postgres_database import connected
from tests.wiring.kept_states import fresh_state

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _fill(state: State, tenant: str, count: int, **how: Any) -> None:
    made = [NewTask("writer", ChatMessage.user(str(at)), **how) for at in range(count)]
    for at in range(0, count, 1000):
        await state.for_tenant(tenant).tasks.submit_many(made[at : at + 1000])


class _Slots:
    """Claims from the ledger, as a worker with so many slots does."""

    def __init__(self, state: State, slots: int) -> None:
        self._state, self.slots = state, slots
        self.taken: list[str] = []
        self.claims = 0

    def free(self) -> int:
        return self.slots - len(self.taken)

    async def claim(self, tenant: str, most: int) -> int:
        self.claims += 1
        found = await self._state.for_tenant(tenant).tasks.claim("w1", limit=most)
        self.taken += [tenant] * len(found)
        return len(found)


async def test_a_tenant_with_many_tasks_delays_the_first_of_another_by_one_round_at_most(
    state: State,
) -> None:
    greedy, *others = tenants = sorted(new_ref() for _ in range(4))
    await _fill(state, greedy, 3000)
    rounds = Rounds(state, tenants, max_age_seconds=0)
    first = _Slots(state, 10)
    await rounds.share(await rounds.tenants("due", fresh=True), first.free, first.claim)
    assert first.taken == [greedy] * 10
    for other in others:
        await _fill(state, other, 1)
    second = _Slots(state, 10)
    await rounds.share(await rounds.tenants("due", fresh=True), second.free, second.claim)
    # All of the others in the next round, and what they leave is for the one with more.
    assert sorted(second.taken) == sorted([*others, *[greedy] * 7])
    assert second.claims == 4


_LOAD = """
WITH made AS (
    INSERT INTO holdfast.task_contexts (tenant, owner, id, created_at)
    SELECT $1, '', 'c' || n, now() FROM generate_series(1, $2) n RETURNING key, id
), tasks AS (
    INSERT INTO holdfast.tasks (
        tenant, id, owner, context_id, context_key, agent, metadata, max_attempts, submit_key,
        submit_digest, retry_of, created_at, state, updated_at, version, transitions, due_at)
    SELECT $1, 't' || m.id, '', m.id, m.key, 'writer', '{}', 5, '',
           '', '', now(), 'submitted', now(), 2, 1, now() FROM made m
)
INSERT INTO holdfast.task_events (tenant, task_id, seq, kind, at, actor, fence, number, to_state,
    worker, attempt, note, message_id, written_at, context_key, stored, digest, body)
SELECT $1, 't' || m.id, e.seq, e.kind, now(), 'client', 0, 1, 'submitted', '', 0, '""', m.id, now(),
       m.key, n.stored, '', '{"v":1,"role":"user","content":[]}'
FROM made m, (VALUES (1, 'transition'), (2, 'message')) e (seq, kind),
     LATERAL (SELECT nextval('holdfast.task_messages_stored') AS stored OFFSET 0) n
"""


async def test_a_hundred_thousand_waiting_tasks_of_one_tenant_delay_another_by_one_round(
    database: str,
) -> None:
    async with fresh_state(database) as state:
        greedy, other, third = tenants = sorted(new_ref() for _ in range(3))
        async with connected(database) as connection:
            await connection.execute(_LOAD, greedy, 100_000)
        rounds = Rounds(state, tenants, max_age_seconds=0)
        for late in (other, third):
            full = _Slots(state, 4)
            await rounds.share(await rounds.tenants("due", fresh=True), full.free, full.claim)
            assert full.taken == [greedy] * 4
            await _fill(state, late, 1)
            # The next round has the other tenant's task, by one claim of each tenant.
            following = _Slots(state, 2)
            due = await rounds.tenants("due", fresh=True)
            await rounds.share(due, following.free, following.claim)
            assert sorted(following.taken) == sorted([greedy, late])
            assert following.claims == 2
        waiting = await state.for_tenant(greedy).tasks.counts(by="state", limit=200_000)
        assert waiting.counts == {"submitted": 100_000 - 10, "working": 10}


async def test_with_one_free_slot_tenants_take_turns(state: State) -> None:
    tenants = sorted(new_ref() for _ in range(3))
    for tenant in tenants:
        await _fill(state, tenant, 20)
    rounds = Rounds(state, tenants, max_age_seconds=0)
    served: list[str] = []
    for _ in range(6):
        slot = _Slots(state, 1)
        await rounds.share(await rounds.tenants("due", fresh=True), slot.free, slot.claim)
        served += slot.taken
    assert served == tenants * 2


async def test_one_tenant_alone_gets_every_slot_by_one_claim(state: State) -> None:
    tenant = new_ref()
    await _fill(state, tenant, 20)
    rounds = Rounds(state, [tenant], max_age_seconds=0)
    slots = _Slots(state, 8)
    await rounds.share(await rounds.tenants("due", fresh=True), slots.free, slots.claim)
    assert (len(slots.taken), slots.claims) == (8, 1)


class _Running:
    """How many handlers run at once, and the most that ever did."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def handle(self, task: TaskContext) -> None:
        name = task.metadata["key"]
        self.now[name] = self.now.get(name, 0) + 1
        self.most[name] = max(self.most.get(name, 0), self.now[name])
        for _ in range(3):
            await asyncio.sleep(0)
        self.now[name] -= 1


async def test_the_limits_of_a_handler_hold_across_workers(state: State) -> None:
    seen = _Running()
    app = App("writer", tenant_concurrency=6)
    app.handler(concurrency=4, key_concurrency=2)(seen.handle)
    assert app.limits == [
        Limit(concurrency=6),
        Limit("writer", concurrency=4),
        Limit("writer", concurrency=2, per_key=True),
    ]
    for key in ("a", "b", "c"):
        await _fill(state, state.tenant, 6, key=key, metadata={"key": key})
    workers = [
        Worker(app, state, tenants=[state.tenant], poll_seconds=0.05, concurrency=5)
        for _ in range(3)
    ]
    runs = [asyncio.create_task(worker.run()) for worker in workers]
    async with asyncio.timeout(60):
        while (await state.tasks.list(states=["completed"], limit=0, count=True)).total != 18:
            working = await state.tasks.list(states=["working"], limit=0, count=True)
            assert working.total is not None
            assert working.total <= 4
            await asyncio.sleep(0.01)
    for worker in workers:
        worker.stop()
    await asyncio.gather(*runs)
    assert max(seen.most.values()) <= 2
    assert set(seen.most) == {"a", "b", "c"}


async def test_a_submit_of_an_app_passes_priority_and_key_on(state: State) -> None:
    app = App("writer")
    app.handler()(_Running().handle)
    task = await app.submit(state, "hello", priority=3, key="a")
    assert (task.priority, task.key) == (3, "a")


async def test_a_bad_limit_is_refused_where_it_is_given() -> None:
    handler: Any = App("writer").handler
    for name, bad in [
        ("concurrency", 0),
        ("rate", "10 per minute"),
        ("key_concurrency", -1),
        ("key_rate", "0/s"),
    ]:
        with pytest.raises(InvalidInputError) as refused:
            handler(**{name: bad})
        assert refused.value.field == name
    with pytest.raises(InvalidInputError, match="rate"):
        App("writer", tenant_rate="x")
