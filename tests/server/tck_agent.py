"""The agent that the public A2A compatibility kit is run against: see a2a-conformance.md.

The kit tells an agent what to do by the prefix of the message id, as its ``scenarios`` describe.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast import App, ChatMessage, Reply, TaskContext, TaskRejectedError
from holdfast.content import DataBlock, DocumentBlock

app = App("tck", description="Does what the scenarios of the A2A compatibility kit ask for.")

Answer = ChatMessage | Reply | str | None
Scenario = Callable[[TaskContext], Awaitable[Answer]]


async def _complete(_task: TaskContext) -> str:
    return "Hello from TCK"


async def _text(task: TaskContext) -> None:
    await task.artifact("text", "Generated text content")


async def _file(task: TaskContext) -> None:
    await task.artifact("output.txt", b"file content", media_type="text/plain")


async def _file_url(task: TaskContext) -> None:
    url = "https://example.com/output.txt"
    await task.artifact("file", DocumentBlock(url=url, media_type="text/plain", name="output.txt"))


async def _data(task: TaskContext) -> None:
    await task.artifact("data", DataBlock({"key": "value", "count": 42}))


async def _reply(task: TaskContext) -> Reply:
    return task.reply("Direct message response")


async def _reject(_task: TaskContext) -> None:
    raise TaskRejectedError("rejected")


async def _chunks(task: TaskContext) -> None:
    await task.artifact("chunks", "chunk-1 ", append=True)
    await task.artifact("chunks", "chunk-2", append=True, last=True)


async def _streamed(task: TaskContext) -> None:
    await task.artifact("stream", "Stream hello from TCK")


async def _nothing(_task: TaskContext) -> None:
    return None


SCENARIOS: dict[str, Scenario] = {
    "tck-artifact-file-url": _file_url,
    "tck-artifact-file": _file,
    "tck-artifact-text": _text,
    "tck-artifact-data": _data,
    "tck-complete-task": _complete,
    "tck-message-response": _reply,
    "tck-reject-task": _reject,
    "tck-stream-002": _nothing,
    "tck-stream-artifact-chunked": _chunks,
    "tck-stream-artifact-file": _file,
    "tck-stream-": _streamed,
}
"""By prefix; the first that fits counts."""


@app.handler
async def work(task: TaskContext) -> Answer:
    """Does what the message id asks for; a task that needs input asks until it gets another id."""
    message = task.message
    while message.id.startswith("tck-input-required"):
        message = await task.ask("More input, please.")
    for prefix, scenario in SCENARIOS.items():
        if message.id.startswith(prefix):
            return await scenario(task)
    return await _complete(task)


@app.handler(agent="tck-extended", public=False)
async def extended(_task: TaskContext) -> str:
    """Makes the card have an extended one, which the kit asks for."""
    return "Hello from TCK"
