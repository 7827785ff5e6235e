"""The agents of the demo world: they run the tasks that a newcomer answers, forks or retries.

Their steps have the same names as in ``demo_world``: a task that began there continues here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.runtime.worker import Worker
from holdfast.studio.demo_world import OFFERS, REPORT, ROOMS
from holdfast.wiring.state import State

PACE_SECONDS = 0.4

app = App("demo", description="The agents of the demo world.")


@asynccontextmanager
async def at_work(state: State) -> AsyncIterator[None]:
    """Run the agents of the demo world in the background of this block.

    ::

        async with at_work(state):
            await server.run()
    """
    worker = Worker(app, state, name="worker-demo")
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def _found(what: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(PACE_SECONDS)
    return what


@app.handler(agent="refunds")
async def refund(task: TaskContext) -> str:
    """Look up an order, and ask a person before it is refunded."""
    await task.step("look-up", _found, {"order": 88121})
    said = await task.ask("Refund 1,240.00 EUR to order 88121?")
    return f"Noted: {said.text}"


@app.handler(agent="booker")
async def book_ferry(task: TaskContext) -> str:
    """Look up a ferry, and ask which account to use."""
    await task.step("look-up", _found, {"order": 88121})
    await task.ask("Which account may I use?", auth=True)
    return "The ferry is booked for Friday, 8:30."


@app.handler(agent="traveller")
async def book_rooms(task: TaskContext) -> str:
    """Ask which rooms, with a typed question, and book them."""
    rooms = await task.ask("Which rooms, and for how many nights?", schema=ROOMS)
    return f"Booked: {rooms['room']}, {rooms['nights']} nights."


@app.handler(agent="importer", max_attempts=1)
async def import_prices(task: TaskContext) -> str:
    """Fetch a price list, which has an error in line 812."""
    await task.step("fetch", _found, {"lines": 2204})
    raise ValueError("line 812: 'n/a' is not a price")


@app.handler(agent="scout")
async def compare(task: TaskContext) -> str:
    """Compare offers, write a report, and ask who gets it."""
    await task.step("fetch", _found, {"pages": 3})
    await task.step("read", _found, [{"offer": name, "price": price} for name, price in OFFERS])

    async def draft() -> dict[str, int]:
        for at, line in enumerate(REPORT):
            await task.artifact("report.md", line, append=at > 0, last=at == len(REPORT) - 1)
        return {"lines": len(REPORT)}

    await task.step("draft", draft)
    said = await task.ask("Who gets it: Ravi alone, or the whole platform team?")
    await task.step("publish", _found, {"sent": True})
    return f"Sent to: {said.text}"


@app.handler(agent="summariser")
@app.handler(agent="analyst")
@app.handler(agent="writer")
async def answer(task: TaskContext) -> str:
    """Fetch, think, and answer."""
    await task.step("fetch", _found, {"rows": 120})
    await task.step("think", _found, {"tokens": 2100})
    return "Done: it is in the shared folder."
