"""What is true of every ledger at every moment, whatever died before.

It reads through the Protocol only, so that it can run after a fault test on any engine. The
numbers are those of the design: I1 to I7, and I9.
"""

from __future__ import annotations

from itertools import pairwise

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.lifecycle import TERMINAL, is_legal
from holdfast.values.tasks.events import StepRecord, TaskEvent, Transition
from holdfast.values.tasks.records import TaskRecord


async def check_invariants(ledger: TaskLedger, *, submitted: int | None = None) -> None:
    """Fail on the first invariant that does not hold; ``submitted`` is how many tasks there are."""
    tasks = await _all_tasks(ledger)
    ids = [task.id for task in tasks]
    assert len(set(ids)) == len(ids), "I1: a task is listed twice"
    assert submitted in (None, len(tasks)), f"I1: {len(tasks)} tasks of {submitted} submitted"
    keys = [(task.owner, task.submit_key) for task in tasks if task.submit_key]
    assert len(set(keys)) == len(keys), "I9: two tasks have one submit key"
    for task in tasks:
        events = await ledger.events(task.id, owner=None)
        _check_timeline(task, events)
        _check_log(task, [event.body for event in events if isinstance(event.body, Transition)])
        steps = [event.body.key for event in events if isinstance(event.body, StepRecord)]
        assert len(set(steps)) == len(steps), f"I5: a step of {task.id} is stored twice"
        assert task.attempts <= task.max_attempts, f"I7: {task.id} has {task.attempts} attempts"


async def _all_tasks(ledger: TaskLedger) -> list[TaskRecord]:
    tasks, cursor = list[TaskRecord](), None
    while True:
        page = await ledger.list(owner=None, limit=500, cursor=cursor)
        tasks += page.tasks
        cursor = page.next_cursor
        if cursor is None:
            return tasks


def _check_timeline(task: TaskRecord, events: list[TaskEvent]) -> None:
    places = [event.seq for event in events]
    assert places == list(range(1, len(events) + 1)), f"I3: {task.id} has a gap: {places}"
    assert task.version == len(events), f"I3: {task.id} is at {task.version} of {len(events)}"
    # A claim raises the fence, and every write is made under the fence of its time: were two
    # leases to write by turns, it would go down again.
    fences = [event.fence for event in events]
    assert fences == sorted(fences), f"I6: the fences of {task.id} go back: {fences}"
    if task.adopted:
        assert set(fences) == {0}, f"I6: {task.id} was adopted and claimed: {fences}"
        return
    claims = [event.fence for event in events if _is_claim(event)]
    assert claims == list(range(1, len(claims) + 1)), f"I6: {task.id} was claimed as {claims}"


def _is_claim(event: TaskEvent) -> bool:
    return isinstance(event.body, Transition) and event.body.to_state == "working"


def _check_log(task: TaskRecord, log: list[Transition]) -> None:
    assert [move.seq for move in log] == list(range(1, len(log) + 1)), f"I3: {task.id}: {log}"
    for move in log if not task.adopted else []:
        legal = is_legal(move.from_state, move.to_state, move.by)
        assert legal, f"I3: {task.id} went from {move.from_state} to {move.to_state} by {move.by}"
    for before, after in pairwise(log):
        assert before.to_state == after.from_state, f"I3: {task.id} jumped to {after.from_state}"
    ends = [at for at, move in enumerate(log, 1) if move.to_state in TERMINAL]
    assert ends in ([], [len(log)]), f"I2: {task.id} ended at {ends} of {len(log)}"
    assert log[-1].to_state == task.state, f"I4: {task.id} is {task.state}, not {log[-1]}"
    assert log[-1].fence == task.fence, f"I4: {task.id} has fence {task.fence}, not {log[-1]}"
