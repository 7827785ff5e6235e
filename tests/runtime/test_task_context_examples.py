"""The page of ``TaskContext``: it has every member, and its examples run."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

import holdfast
from holdfast import App, ChatMessage, TaskContext, TaskState
from holdfast.items import ItemKey
from scripts.task_context_page import BOUND, GROUPS, INTERNAL, examples, members


class _Bank:
    def __init__(self) -> None:
        self.keys: list[str] = []

    async def pay(self, amount: int, *, key: str) -> str:
        self.keys.append(key)
        return f"{amount} paid"


async def _fetch(url: str) -> list[str]:
    return [f"a page of {url}"]


async def _summarise(pages: list[str]) -> AsyncIterator[str]:
    for page in pages:
        yield page


def test_the_page_has_every_member_of_the_context() -> None:
    placed = [name for names in GROUPS.values() for name in names]
    assert sorted(placed) == sorted(set(members(TaskContext)) - INTERNAL)
    public = {name for name in dir(TaskContext) if not name.startswith("_")}
    assert public - INTERNAL <= set(placed)
    kinds: list[type[Any]] = [TaskContext, *BOUND.values()]
    for kind in kinds:
        for one in members(kind).values():
            assert one.name in INTERNAL or (one.text and one.example), one.name


@pytest.mark.asyncio
@pytest.mark.parametrize("name", examples())
async def test_every_example_of_the_page_runs_in_a_handler(name: str) -> None:
    bank = _Bank()
    known: dict[str, Any] = {
        "holdfast": holdfast,
        "ChatMessage": ChatMessage,
        "ItemKey": ItemKey,
        "datetime": datetime,
        "UTC": UTC,
        "app": App("other"),
        "bank": bank,
        "fetch": _fetch,
        "summarise": _summarise,
        "answer": lambda text: f"about {text}",
        "pages": ["page 1", "page 2"],
    }
    body = textwrap.indent(examples()[name], "    ")
    exec(compile(f"async def example(task):\n{body}\n", name, "exec"), known)  # noqa: S102
    clock = holdfast.ManualClock()
    app = App("writer")
    ran = []

    @app.handler(max_attempts=1)
    async def write(task: TaskContext) -> str:
        ran.append(task.fence)
        await known["example"](task)
        return "done"

    @app.handler(agent="reader")
    async def read(task: TaskContext) -> str:
        return f"{task.message.text} is read"

    async with holdfast.open("memory:", clock=clock) as state:
        task = await app.submit(state, "ping")
        await app.run_until_idle(state)
        found = await state.tasks.get(task.id)
        assert found is not None
        if name == "ask":
            assert found.state is TaskState.INPUT_REQUIRED
            await state.tasks.respond(task.id, ChatMessage.user("the second"))
            await app.run_until_idle(state)
        elif name in {"sleep", "sleep_until", "receive"}:
            assert found.run_after is not None
            return
        done = await state.tasks.get(task.id)
        assert done is not None
        assert done.state is TaskState.COMPLETED, done.note
        if name == "ask":
            assert [message.text for message in done.messages][-2:] == [
                "reading the second",
                "done",
            ]
        if name == "idempotency_key":
            assert bank.keys == [f"{task.id}:step:pay:1"]
        assert len(ran) == (2 if name in {"ask", "call", "wait"} else 1)
