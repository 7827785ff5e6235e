from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.contracts.tasks.work import Work
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.engines.inmemory.tasks.work import InMemoryWork
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import PushConfig

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_on_the_real_clock_an_entry_has_one_time_and_replay_is_the_task_as_it_is() -> None:
    storage = InMemoryLedger(InMemory())
    ledger = Ledger(storage)
    task = await ledger.submit("writer", ChatMessage.user("hello"))
    [claimed] = await ledger.claim("w1")
    await ledger.append_artifact(claimed.lease, "a1", [TextBlock("x")])
    step = await ledger.record_step(claimed.lease, StepKey("s1"), 1)
    await ledger.transition(claimed.lease, "completed", message=ChatMessage.assistant("done"))
    stored = await ledger.get(task.id)
    assert stored is not None
    assert await ledger.replay(task.id, stored.version) == replace(stored, lease_expires_at=None)
    for event in await ledger.events(task.id):
        if event.kind == "transition":
            assert event.at == event.body.at  # type: ignore[union-attr]
        if event.kind == "step":
            assert event.at == step.stored_at


async def test_followers_leave_nothing_behind() -> None:
    storage = InMemoryLedger(InMemory())
    ledger = Ledger(storage)
    task = await ledger.submit("writer", ChatMessage.user("hello"))

    async def watch() -> int:
        return len([event async for event in ledger.follow(task.id)])

    watching = [asyncio.ensure_future(watch()) for _ in range(3)]
    await asyncio.sleep(0)
    assert len(storage._data.followers.waiting[task.id]) == 3
    watching[0].cancel()
    await ledger.cancel(task.id)
    await asyncio.gather(*watching, return_exceptions=True)
    assert storage._data.followers.waiting == {}


async def test_an_append_adds_one_entry_and_rewrites_none() -> None:
    storage = InMemoryLedger(InMemory())
    ledger = Ledger(storage)
    task = await ledger.submit("writer", ChatMessage.user("hello"))
    [claimed] = await ledger.claim("w1")
    row = storage._data.tasks[task.id]
    for at in range(20):
        before = list(row.events)
        await ledger.append_message(claimed.lease, ChatMessage.assistant(f"message {at}"))
        assert len(row.events) == len(before) + 1
        assert all(old is new for old, new in zip(before, row.events, strict=False))


async def test_a_finished_delivery_leaves_no_lane_behind() -> None:
    storage = InMemoryLedger(InMemory())
    ledger = Ledger(storage)
    await ledger.submit(
        "writer", ChatMessage.user("hello"), push=[PushConfig("p1", "https://example.org")]
    )
    while entries := await ledger.claim_outbox():
        for entry in entries:
            await ledger.mark_delivered(entry)
    assert storage._data.lanes == {}


@pytest.mark.parametrize("tasks", ["t1", ["t1"], [("t1",)], [("", 1)], [("t1", -1)], [("t1", "1")]])
async def test_only_ids_with_versions_are_marked_as_copied(tasks: Any) -> None:
    with pytest.raises(InvalidInputError, match="tasks"):
        await Ledger(InMemoryLedger(InMemory())).mark_copied(tasks)


async def test_a_kind_of_work_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="kind: must be one of due, working"):
        await Work(InMemoryWork(InMemory())).tenants("idle")  # type: ignore[arg-type]


async def test_an_entry_of_another_name_is_not_in_the_outbox() -> None:
    ledger = Ledger(InMemoryLedger(InMemory()))
    push = [PushConfig("p1", "https://example.org")]
    await ledger.submit("writer", ChatMessage.user("hello"), push=push)
    [entry] = await ledger.claim_outbox()
    assert not await ledger.mark_delivered(replace(entry, id="e1"))
    assert not await ledger.mark_failed(replace(entry, id="e1"), "503")
    assert await ledger.mark_delivered(entry)
