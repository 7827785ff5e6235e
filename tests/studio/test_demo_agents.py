"""In the demo world, what a newcomer answers, forks or runs again goes on to its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast.studio.demo_agents import at_work
from holdfast.studio.demo_world import fill
from holdfast.values.content import ChatMessage

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _one(state: holdfast.State, agent: str, task_state: str) -> str:
    page = await state.tasks.list(agent=agent, states=[task_state], limit=1)
    return str(page.tasks[0].id)


async def _reaches(state: holdfast.State, task_id: str, wanted: str) -> Any:
    async with asyncio.timeout(60):
        while True:
            found = await state.tasks.get(task_id)
            if found is not None and found.state == wanted:
                return found
            await asyncio.sleep(0.05)


async def test_tasks_of_the_demo_world_go_on() -> None:
    async with holdfast.open("memory:") as state:
        taken_over = await fill(state, pace=0)
        async with at_work(state):
            refund = await _one(state, "refunds", "input-required")
            await state.tasks.respond(refund, ChatMessage.user("Yes."))
            assert (await _reaches(state, refund, "completed")).result == "Noted: Yes."
            ferry = await _one(state, "booker", "auth-required")
            await state.tasks.respond(ferry, ChatMessage.user("the shared one"))
            await _reaches(state, ferry, "completed")
            rooms = await _one(state, "traveller", "input-required")
            answer = '{"room": "double", "nights": 2, "breakfast": true}'
            await state.tasks.respond(rooms, ChatMessage.user(answer))
            assert (await _reaches(state, rooms, "completed")).result == "Booked: double, 2 nights."
            failed = await _one(state, "importer", "failed")
            again = await state.tasks.resume_failed(failed)
            assert "line 812" in (await _reaches(state, again.id, "failed")).note
            fork = await state.tasks.fork(taken_over, 6)
            asks = await _reaches(state, fork.id, "input-required")
            assert [one.key.name for one in await state.tasks.steps(asks.id)][:2] == [
                "fetch",
                "read",
            ]
            await state.tasks.respond(fork.id, ChatMessage.user("Ravi"))
            assert (await _reaches(state, fork.id, "completed")).result == "Sent to: Ravi"
