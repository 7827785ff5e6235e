"""Agents for worker processes that are killed: ``holdfast worker fault_agents:app``.

What a handler did is a line in the file that ``FAULT_JOURNAL`` names: it survives the process.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import holdfast

CHUNKS = 40
app = holdfast.App("streamer", description="Is killed while it works.")


def note(task: holdfast.TaskContext, what: str) -> None:
    """Write a line that survives the process."""
    with Path(os.environ["FAULT_JOURNAL"]).open("a") as journal:
        journal.write(f"{task.id} {what}\n")


@app.handler
async def stream(task: holdfast.TaskContext) -> None:
    """A step that writes a head, then a streamed artifact, as slow as the message says."""

    async def head() -> str:
        note(task, "head")
        await task.artifact("out.txt", "the head ñ 🌊\n", append=True)
        return "written"

    await task.step("head", head)
    for at in range(CHUNKS):
        await task.artifact("out.txt", f"line {at} of the tide\n", append=True)
        await asyncio.sleep(float(task.message.text))
    await task.artifact("out.txt", "the end\n", append=True, last=True)


@app.handler(agent="sleeper")
async def sleep(task: holdfast.TaskContext) -> str:
    """Works for as many seconds as the message says."""
    note(task, "asleep")
    await asyncio.sleep(float(task.message.text))
    return "awake"


@app.handler(agent="asker")
async def ask(task: holdfast.TaskContext) -> str:
    """Works, asks, and works on."""
    await task.step("before", lambda: note(task, "before"))
    answer = await task.ask("Which chapter?")
    await task.step("after", lambda: note(task, "after"))
    return f"chapter {answer.text}"


@app.handler(agent="crasher")
async def crash(task: holdfast.TaskContext) -> None:
    """Kills its worker."""
    note(task, "crash")
    os._exit(9)


@app.handler(agent="noter", retention=holdfast.HistoryRetention.PERMANENT)
async def append(task: holdfast.TaskContext) -> None:
    """Appends to its transcript, with ids that it mints on every run; is killed after the first."""
    await task.history.append(holdfast.ChatMessage.assistant("one"))
    note(task, "appended")
    if task.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    await task.history.append(holdfast.ChatMessage.assistant("two"))
    await task.ask("Go on?")


@app.handler(agent="counter")
async def count(task: holdfast.TaskContext) -> str:
    """Takes a little while."""
    await asyncio.sleep(0.05)
    return task.message.text
