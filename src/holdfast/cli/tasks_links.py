"""``holdfast tasks``: the children of a task, and messages to a running task."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.format import state_mark
from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Json, TaskId, Tenant
from holdfast.cli.task_ids import SEARCHED, full_id
from holdfast.contracts.tasks.inbox import TOPIC
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.steps import WAITS_FOR
from holdfast.values.as_json import jsonable
from holdfast.values.errors import InvalidInputError
from holdfast.values.formats import ago
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import TaskPage, TaskRecord

_out = Console(highlight=False)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group ``tasks``."""
    app.command("children")(children)
    app.command("send")(send)


def children(
    task_id: TaskId,
    *,
    limit: Annotated[int, typer.Option(min=0, help="How many to list at most.")] = 50,
    cursor: Annotated[str, typer.Option(help="Go on after the page that ended here.")] = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """List the tasks that a task has submitted, oldest first."""

    async def work() -> TaskPage:
        async with open_shared(tenant) as state:
            found = await full_id(state.tasks, task_id)
            return await state.tasks.children(
                found, owner=ANY_OWNER, limit=limit, cursor=cursor or None
            )

    page = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(page)))
        return
    if not page.tasks:
        typer.echo("the task has no children")
        return
    table = Table("id", "state", "agent", "changed")
    for task in page.tasks:
        changed = ago(task.updated_at)
        table.add_row(escape(task.id), state_mark(task.state), escape(str(task.agent)), changed)
    _out.print(table)
    if page.next_cursor:
        typer.echo(f"more: --cursor {page.next_cursor}")


async def awaited(ledger: TaskLedger, task: TaskRecord | None) -> list[TaskRecord]:
    """Return the children that a task waits for, among the first that it submitted.

    ::

        for child in await awaited(state.tasks, task):
            print(child.agent, child.state)
    """
    if task is None or not task.note.startswith(WAITS_FOR):
        return []
    page = await ledger.children(task.id, owner=ANY_OWNER, limit=SEARCHED)
    return [one for one in page.tasks if not one.terminal]


def send(
    task_id: TaskId,
    message: Annotated[str, typer.Argument(help="Text, or any JSON with --data.")],
    *,
    topic: Annotated[str, typer.Option(help="The topic that the handler receives.")] = TOPIC,
    data: Annotated[bool, typer.Option("--data", help="The message is JSON.")] = False,
    message_id: Annotated[
        str, typer.Option(help="Makes it idempotent: a retry with the same id has no effect.")
    ] = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Send a message to a task that has not ended; its handler gets it from `task.receive`.

    For example:

        holdfast tasks send 7f3e90aa '{"approved": true}' --data --topic approval
    """
    body = _decoded(message) if data else message

    async def work() -> str:
        async with open_shared(tenant) as state:
            found = await full_id(state.tasks, task_id)
            return await state.tasks.send(
                found, body, topic=topic, message_id=message_id or None, owner=ANY_OWNER
            )

    sent = asyncio.run(work())
    typer.echo(json.dumps({"message_id": sent}) if as_json else f"sent {sent}")


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError("message", f"is not JSON: {error}") from None
