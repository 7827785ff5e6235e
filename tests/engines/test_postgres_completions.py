"""Tasks that are completed together have the same rows as tasks that are completed one by one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import holdfast
from holdfast import ChatMessage, State, TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Completion, Lease
from tests.engines.postgres_database import connected, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
OWN = {"id", "context_id", "context_key", "created_at", "updated_at", "due_at"}
"""Columns in which two tasks differ."""

SLOW = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF NEW.agent = 'writer' THEN PERFORM pg_sleep(0.2); END IF; RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON holdfast.tasks FOR EACH ROW EXECUTE FUNCTION slow()"""


async def _waited(state: State, session_id: str) -> Lease:
    """A task at work that still waits for a child: it did not end in time."""
    await state.tasks.submit("writer", ChatMessage.user("go"), session_id=session_id)
    [first] = await state.tasks.claim("w1", agents=["writer"])
    child = await state.tasks.submit_child(
        first.lease, StepKey("look", kind="child"), "reader", ChatMessage.user("look")
    )
    await state.tasks.transition(
        first.lease, "submitted", children=[child.id], run_after=timedelta(0)
    )
    [again] = await state.tasks.claim("w1", agents=["writer"])
    assert again.task.id == first.task.id
    return again.lease


async def test_the_row_of_a_completed_task_is_that_of_a_transition() -> None:
    said = ChatMessage.assistant("done")
    async with migrated_database() as url:
        async with holdfast.open(url) as state:
            together, alone = await _waited(state, "c1"), await _waited(state, "c2")
            reached = await state.tasks.complete_many([Completion(together, said, 3)])
            assert reached == [TaskState.COMPLETED]
            await state.tasks.transition(alone, TaskState.COMPLETED, message=said, result=3)
        async with connected(url) as connection:
            query = "SELECT * FROM holdfast.tasks WHERE agent = 'writer' ORDER BY context_id"
            rows: list[dict[str, Any]] = [dict(row) for row in await connection.fetch(query)]
    first, second = ({name: row[name] for name in row.keys() - OWN} for row in rows)
    assert first == second
    assert first["waits_for"] == 0


async def test_two_calls_never_wait_for_each_others_parents() -> None:
    """Children of the same parents end in two processes, in another order than their parents."""
    complete = """
        SELECT * FROM holdfast.complete_tasks_with(
            'default', $1, $2, $3, NULL, NULL, NULL, NULL, NULL)"""
    async with migrated_database() as url:
        async with holdfast.open(url) as state:
            for _ in range(2):
                await state.tasks.submit("writer", ChatMessage.user("go"))
            parents = await state.tasks.claim("w1", agents=["writer"], limit=2)
            children = {one.task.id: list[str]() for one in parents}
            for number, order in enumerate((parents, parents[::-1])):
                for one in order:
                    key = StepKey("look", number + 1, "child")
                    said = ChatMessage.user("look")
                    child = await state.tasks.submit_child(one.lease, key, "reader", said)
                    children[one.task.id].append(child.id)
            for one in parents:
                waits_for = children[one.task.id]
                await state.tasks.transition(one.lease, "submitted", children=waits_for)
            claimed = await state.tasks.claim("w1", agents=["reader"], limit=4)
            leases = {one.task.id: one.lease for one in claimed}
        async with connected(url) as first, connected(url) as second:
            await first.execute(SLOW)
            calls = []
            for connection, ids in zip(
                (first, second), zip(*children.values(), strict=True), strict=True
            ):
                await connection.execute("SELECT set_config('holdfast.tenant', 'default', false)")
                ended = sorted(ids)
                fences = [leases[one].fence for one in ended]
                calls.append(connection.fetch(complete, ended, fences, ["w1"] * len(ended)))
            found = await asyncio.gather(*calls)
            assert [len(rows) for rows in found] == [2, 2]
            waiting = "SELECT sum(waits_for) FROM holdfast.tasks WHERE agent = 'writer'"
            assert await first.fetchval(waiting) == 0
