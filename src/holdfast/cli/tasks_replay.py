"""``holdfast tasks replay``: shows a task as it was."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Json, TaskId, Tenant
from holdfast.cli.task_ids import full_id
from holdfast.cli.timeline import draw_head
from holdfast.runtime.content import text_and_data
from holdfast.values.as_json import jsonable
from holdfast.values.errors import InvalidInputError
from holdfast.values.formats import clock
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import TaskRecord

_out = Console(highlight=False)


def replay(
    task_id: TaskId,
    *,
    at: Annotated[
        int | None,
        typer.Option(min=1, help="The number of the event, as `show` has it; else the last."),
    ] = None,
    messages: Annotated[
        int | None, typer.Option(min=0, help="Only the last so many messages.")
    ] = None,
    artifacts: Annotated[bool, typer.Option(help="With its artifacts.")] = True,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Show a task as it was after an event: its state, its messages, its artifacts.

    Nothing runs again and nothing changes: the state is rebuilt from the timeline.

    For example:

        holdfast tasks replay 7f3e90aa --at 12 --messages 5 --no-artifacts
    """

    async def work() -> TaskRecord | None:
        async with open_shared(tenant) as state:
            found = await full_id(state.tasks, task_id)
            last = None
            if at is None:
                last = await state.tasks.get(
                    found, owner=ANY_OWNER, messages_limit=0, artifacts=False
                )
            seq = last.version if last is not None else at or 1
            return await state.tasks.replay(
                found, seq, owner=ANY_OWNER, messages_limit=messages, artifacts=artifacts
            )

    task = asyncio.run(work())
    if task is None:
        raise InvalidInputError(
            "at", "must not be before the first event: see `holdfast tasks show`"
        )
    if as_json:
        typer.echo(json.dumps(jsonable(task)))
        return
    _out.print(draw_head(task))
    for message in task.messages:
        _out.print(f"\n[bold]{message.role}[/] [dim]{clock(message.created_at)}[/]")
        _out.print(escape(text_and_data(message.content)))
    for artifact in task.artifacts:
        _out.print(f"\n[bold]artifact {escape(artifact.id)}[/]")
        _out.print(escape(text_and_data(artifact.parts)))
