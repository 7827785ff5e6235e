"""Tasks that are completed together have the same rows as tasks that are completed one by one."""

from __future__ import annotations

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


async def _waited(state: State, session_id: str) -> Lease:
    """A task at work that still waits for a child: it did not end in time."""
    await state.tasks.submit("writer", ChatMessage.user("go"), session_id=session_id)
    [first] = await state.tasks.claim("w1", agents=["writer"])
    child = await state.tasks.submit_child(
        first.lease, StepKey("look", kind="child"), "reader", ChatMessage.user("look")
    )
    await state.tasks.transition(first.lease, "submitted", children=[child.id], run_after=timedelta(0))
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
