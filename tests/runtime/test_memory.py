"""A handler's memory: bound to its agent and context, and the same after a retry."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import App, State, TaskContext, TaskState

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_handler_remembers_what_earlier_tasks_of_the_agent_did(state: State) -> None:
    app = App("rememberer")
    recalled: list[list[object]] = []

    @app.handler(backoff_seconds=0.001)
    async def work(task: TaskContext) -> None:
        hits = await task.memory.recall("which harbour?")
        recalled.append([hit.event.payload for hit in hits])
        await task.memory.record("decision", {"harbour": "north"}, event_id=f"{task.id}:harbour")
        if task.attempt == 1:
            raise RuntimeError("once")

    for _ in range(2):
        task = await app.submit(state, "go")
        found = task
        async with asyncio.timeout(60):
            while not found.terminal:
                await app.run_until_idle(state)
                found = await state.tasks.get(task.id) or found
        assert found.state is TaskState.COMPLETED
        events = await state.memory(task.agent, session_id=task.session_id).recent()
        decisions = [event.payload for event in events if event.type == "decision"]
        assert decisions == [{"harbour": "north"}]
    assert recalled[0] == []
    assert {"harbour": "north"} in recalled[-1]
