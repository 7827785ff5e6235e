"""What ``holdfast tasks show`` shows of questions, answers and results."""

from __future__ import annotations

import asyncio
from typing import Any

import holdfast
from holdfast import App, TaskContext
from tests.cli.command import Command

app = App("booker")
ORDER = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}


@app.handler
async def book(task: TaskContext) -> dict[str, Any]:
    """Ask for an object, try a step twice, and return an object."""
    tries: list[int] = []

    def reserve() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("no route to the ferry")
        return "seat 7"

    order = await task.ask("How many?", schema=ORDER, name="order")
    day = await task.ask("Which day?", options=["Monday", "Tuesday"], name="day")
    seat = await task.step("reserve", reserve, retries=1, backoff_seconds=0.01)
    return {"seats": order["seats"], "day": day, "seat": seat}


def _work(database: str, tenant: str) -> None:
    async def work() -> None:
        async with holdfast.open(database, tenant=tenant) as state:
            await app.run_until_idle(state)

    asyncio.run(work())


def test_what_fits_a_question_and_what_a_handler_returned_is_shown(
    command: Command, database: str, tenant: str
) -> None:
    task = command("tasks", "submit", "booker", "The ferry", "--json").json["id"]
    _work(database, tenant)
    asked = " ".join(command("tasks", "show", task).out.split())
    assert "the answer must fit the JSON Schema" in asked
    assert '"seats": {"type": "integer"}' in asked
    assert command("tasks", "answer", task, '{"seats": 2}').code == 0
    _work(database, tenant)
    assert "one of: Monday, Tuesday" in command("tasks", "show", task).out
    assert command("tasks", "answer", task, "Monday").code == 0
    _work(database, tenant)
    returned = '{"seats": 2, "day": "Monday", "seat": "seat 7"}'
    shown = " ".join(command("tasks", "show", task).out.split())
    assert f"result {returned}" in shown
    assert f"assistant {returned}" in shown
    assert "reserve failed, try 1: ConnectionError: no route to the ferry" in shown
    assert returned in command("tasks", "replay", task).out
    assert returned in command("tasks", "watch", task).out
