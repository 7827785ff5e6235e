"""``holdfast tasks watch``: shows events of tasks as they happen."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from holdfast.cli.format import state_mark
from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Json, Tenant
from holdfast.cli.task_ids import full_id, short_ids
from holdfast.cli.timeline import line_of
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.as_json import jsonable
from holdfast.values.formats import ago, clock, short
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import TaskRecord

_out = Console(highlight=False)
ROWS = 20
"""Number of rows in the table of all tasks."""


def watch(
    task_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="Follow this task; without it, all of them.")
    ] = "",
    *,
    after: Annotated[
        int, typer.Option(min=0, help="Begin after this event of the task's timeline.")
    ] = 0,
    poll_seconds: Annotated[
        float, typer.Option(min=0.05, help="Without an ID: how often to look.")
    ] = 1.0,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Follow a task until it has ended, or all tasks until Ctrl-C.

    With an ID it shows every event of the task, first the past ones, then each as it happens, on
    any worker; exit code 0 if the task is completed, 1 if it ended otherwise. Without an ID it
    shows the tasks that changed last. With --json it prints one object per line.

    For example:

        holdfast tasks watch

        holdfast tasks watch 7f3e90aa --json
    """

    async def work() -> TaskState | None:
        async with open_shared(tenant) as state:
            if task_id:
                found = await full_id(state.tasks, task_id)
                return await _follow(state.tasks, found, after, as_json=as_json)
            await _look(state.tasks, poll_seconds, as_json=as_json)
            return None

    try:
        ended = asyncio.run(work())
    except KeyboardInterrupt:
        # Ctrl-C ends watching; the tasks are not affected.
        raise typer.Exit(0) from None
    raise typer.Exit(0 if ended in {TaskState.COMPLETED, None} else 1)


async def _follow(
    ledger: TaskLedger, task_id: str, after: int, *, as_json: bool
) -> TaskState | None:
    async for event in ledger.follow(task_id, after_seq=after, owner=ANY_OWNER):
        if as_json:
            typer.echo(json.dumps(jsonable(event)))
            continue
        line = line_of(event)
        _out.print(
            f"[dim]{line.seq:>4} {clock(line.at)[11:]}[/] {line.kind:8} {line.detail}",
            soft_wrap=True,
        )
    task = await ledger.get(task_id, owner=ANY_OWNER, messages_limit=0, artifacts=False)
    return task.state if task else None


async def _look(ledger: TaskLedger, poll_seconds: float, *, as_json: bool) -> None:
    if as_json or not _out.is_terminal:
        await _tell_changes(ledger, poll_seconds, as_json=as_json)
    with Live(console=_out, auto_refresh=False) as live:
        while True:
            page = await ledger.list(owner=ANY_OWNER, limit=ROWS, first_message=True, count=True)
            live.update(table_of(page.tasks, total=page.total or 0), refresh=True)
            await asyncio.sleep(poll_seconds)


async def _tell_changes(ledger: TaskLedger, poll_seconds: float, *, as_json: bool) -> None:
    """Print a line for each task that has changed since the last poll."""
    seen: dict[str, int] = {}
    while True:
        page = await ledger.list(owner=ANY_OWNER, limit=ROWS)
        now = {task.id: task.version for task in page.tasks}
        for task in reversed(page.tasks):
            if seen.get(task.id) != task.version:
                typer.echo(json.dumps(jsonable(task)) if as_json else _plain(task))
        seen = now
        await asyncio.sleep(poll_seconds)


def _plain(task: TaskRecord) -> str:
    return f"{clock(task.updated_at)} {task.id} {task.agent} {task.state}"


def table_of(tasks: list[TaskRecord], *, total: int) -> Table:
    """Return a table of tasks, one per row.

    ::

        console.print(table_of(page.tasks, total=page.total))
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.caption = f"{len(tasks)} of {total}"
    owned = any(one.owner for one in tasks)
    ids = short_ids([one.id for one in tasks])
    table.add_column("task", no_wrap=True, min_width=max(map(len, ids.values()), default=4))
    table.add_column("state", no_wrap=True, min_width=14)
    table.add_column("agent", no_wrap=True, overflow="ellipsis", min_width=8, max_width=20)
    if owned:
        table.add_column("owner", no_wrap=True, overflow="ellipsis", min_width=6, max_width=16)
    table.add_column("changed", no_wrap=True, min_width=10)
    table.add_column("first message", no_wrap=True, overflow="ellipsis", min_width=12)
    for one in tasks:
        text = one.first_message.text if one.first_message else ""
        cells = [escape(ids[one.id]), state_mark(one.state), escape(str(one.agent))]
        if owned:
            cells.append(escape(one.owner))
        table.add_row(*cells, ago(one.updated_at), escape(short(text)))
    return table
