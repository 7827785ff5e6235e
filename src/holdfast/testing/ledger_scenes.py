"""How the tests of the ledger bring a task to where a promise begins."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import ClaimedTask, Lease, TaskRecord
from holdfast.values.tasks.reports import Report

LONG = 1000.0
"""Seconds after which every lease of these tests has expired."""


async def submitted(ledger: TaskLedger, text: str = "Tides of Brest?", **how: Any) -> TaskRecord:
    """A queued task of the agent ``writer``."""
    return await ledger.submit(how.pop("agent", "writer"), ChatMessage.user(text), **how)


async def claimed(ledger: TaskLedger, worker: str = "w1", **how: Any) -> ClaimedTask:
    """The one task that can be claimed now."""
    [one] = await ledger.claim(worker, limit=100, **how)
    return one


async def leased(ledger: TaskLedger, **how: Any) -> Lease:
    """The lease on a new task; the queue must be empty before."""
    await submitted(ledger, **how)
    return (await claimed(ledger)).lease


async def next_lease(harness: Harness, ledger: TaskLedger) -> Lease:
    """The lease of the next attempt, after the present holder died."""
    await harness.elapse(LONG)
    await ledger.recover_expired()
    return (await claimed(ledger, "w2")).lease


async def brought_to(ledger: TaskLedger, state: TaskState, **how: Any) -> TaskRecord:
    """A new task in any state, the usual way; the queue must be empty before."""
    task = await submitted(ledger, **how)
    if state is not TaskState.SUBMITTED:
        lease = (await claimed(ledger)).lease
        if state is not TaskState.WORKING:
            await ledger.transition(lease, state)
    return await found(ledger, task)


async def with_output(ledger: TaskLedger) -> str:
    """The id of a completed task with three messages and an artifact."""
    task = await submitted(ledger, "one")
    lease = (await claimed(ledger)).lease
    for text in ("two", "three"):
        await ledger.append_message(lease, ChatMessage.assistant(text))
    await ledger.append_artifact(lease, "a1", [TextBlock("made")])
    await ledger.transition(lease, "completed")
    return task.id


async def found(ledger: TaskLedger, task: TaskRecord | str) -> TaskRecord:
    """The task as it is stored now, for the operator, with all it holds."""
    key = task if isinstance(task, str) else task.id
    stored = await ledger.get(key, owner=None)
    assert stored is not None, f"task {key} is gone"
    return stored


async def adopted(store: Any, *reports: Report, task_id: str = "t1", **how: Any) -> TaskRecord:
    """A task that somebody else runs."""
    task: TaskRecord = await store.adopt(task_id, agent="writer", reports=reports, **how)
    return task


async def recorded(store: Any, *reports: Report, task_id: str = "t1") -> int:
    """Report on a task as it is now."""
    task = await found(store, task_id)
    version: int = await store.record(task_id, reports, expected_version=task.version)
    return version


def texts(messages: list[ChatMessage]) -> list[str]:
    """What messages say."""
    return [message.text for message in messages]
