"""``holdfast tasks`` for children of tasks, and for messages to tasks."""

from __future__ import annotations

import asyncio

import holdfast
from holdfast import ChatMessage
from holdfast.values.tasks.events import StepKey
from tests.cli.command import Command


def test_children_are_listed_and_canceled_with_their_parent(
    command: Command, tenant: str, database: str
) -> None:
    async def submit() -> tuple[str, str]:
        async with holdfast.open(database, tenant=tenant) as state:
            await state.tasks.submit("editor", ChatMessage.user("a book"))
            [claimed] = await state.tasks.claim("w1", agents=["editor"])
            child = await state.tasks.submit_child(
                claimed.lease, StepKey("first", kind="child"), "writer", ChatMessage.user("tides")
            )
            await state.tasks.release(claimed.lease)
            return claimed.task.id, child.id

    parent, child = asyncio.run(submit())
    [listed] = command("tasks", "children", parent, "--json").json["tasks"]
    assert (listed["id"], listed["parent_id"]) == (child, parent)
    assert child in command("tasks", "children", parent).out.replace("\n", "")
    assert "no children" in command("tasks", "children", child).out
    command("tasks", "cancel", parent, "--children")
    assert command("tasks", "show", child, "--json").json["state"] == "canceled"


def test_a_parent_that_waits_shows_the_children_that_it_waits_for(
    command: Command, tenant: str, database: str
) -> None:
    app = holdfast.App("editor")

    @app.handler
    async def edit(task: holdfast.TaskContext) -> None:
        await task.gather(*(task.call(f"writter-{number}", "tides") for number in range(6)))

    async def wait() -> str:
        async with holdfast.open(database, tenant=tenant) as state:
            task = await app.submit(state, "a book")
            await app.run_until_idle(state)
            return task.id

    shown = " ".join(command("tasks", "show", asyncio.run(wait())).out.split())
    assert shown.count("agent writter-") == 5, shown
    assert shown.count(", submitted, no worker has claimed it yet") == 5, shown
    assert "and more: holdfast tasks children" in shown


def test_a_message_is_sent_once(command: Command, tenant: str) -> None:
    assert tenant
    task = command("tasks", "submit", "writer", "tides", "--json").json["id"]
    arguments = ("tasks", "send", task, '{"ok": true}', "--data", "--message-id", "m1")
    assert command(*arguments, "--json").json == {"message_id": "m1"}
    assert "sent m1" in command(*arguments).out
    wrong = command("tasks", "send", task, "other", "--message-id", "m1")
    assert "another body" in wrong.err
    assert "is not JSON" in command("tasks", "send", task, "{", "--data").err
