"""An agent that survives ``kill -9``: copy it, and put your own work into the steps.

Try it in the process, where nothing is kept::

    python examples/agent.py

or as a service with workers, where everything is, in the folder ``examples``::

    holdfast serve agent:app --no-worker
    holdfast worker agent:app
    holdfast tasks submit librarian "the tides of Brest"

Kill the worker as hard as you like, and start another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import holdfast
from holdfast import ChatMessage

app = holdfast.App("librarian", description="Finds books, and writes a list of them.")


@app.handler(timeout_seconds=600)
async def librarian(task: holdfast.TaskContext) -> str:
    """List the books on a subject, for the reader that you name when you are asked."""
    # A step never runs again once its result is stored: neither after a crash nor after an answer.
    books = await task.step("find", find, task.message.text)

    # The task rests here until there is an answer, for a minute or a year, whatever restarts.
    reader = await task.ask(f"I found {len(books)} books. Who will read them?")

    # Inside of a step a stream is kept as a whole; cut off in the middle, it is begun anew.
    async def write() -> int:
        count = 0
        async for line in lines(books, reader.text):
            await task.artifact("books.md", line, append=True)
            count += 1
        return count

    written = await task.step("write", write)

    # An effect outside: the key makes the other side do it once, also if we die before we know.
    async def send() -> str:
        return await post(f"{written} lines", key=task.idempotency_key)

    receipt = await task.step("send", send)
    return f"{written} lines for {reader.text}: {receipt}"


async def find(subject: str) -> list[str]:
    """What stands for a search: it costs time, and must not be done twice."""
    await asyncio.sleep(0.1)
    return [f"{kind} of {subject}" for kind in ("An atlas", "A history", "The poetry")]


async def lines(books: list[str], reader: str) -> AsyncIterator[str]:
    """What stands for a model that streams."""
    yield f"# For {reader}\n"
    for book in books:
        await asyncio.sleep(0.1)
        yield f"- {book}\n"


async def post(text: str, *, key: str) -> str:
    """What stands for somebody else's service, which honours an idempotency key."""
    await asyncio.sleep(0.1)
    return f"sent {text} under {key.partition(':')[2]}"


async def main() -> None:
    """The same agent in one process, without a service: as in a test or a notebook."""
    async with holdfast.open("memory:") as state:
        task = await app.submit(state, "the tides of Brest")
        await app.run_until_idle(state)
        waiting = await state.tasks.get(task.id)
        assert waiting is not None
        assert waiting.status_message is not None
        print(f"{waiting.state}: {waiting.status_message.text}")
        await state.tasks.respond(task.id, ChatMessage.user("a sailor"))
        await app.run_until_idle(state)
        done = await state.tasks.get(task.id)
        assert done is not None
        print(f"{done.state}: {done.messages[-1].text}")


if __name__ == "__main__":
    asyncio.run(main())
