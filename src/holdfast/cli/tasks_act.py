"""Runs a call on one task for a command, and prints the task."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import typer
from rich.console import Console
from rich.markup import escape

from holdfast.cli.format import state_mark
from holdfast.cli.open_state import open_shared
from holdfast.cli.task_ids import full_id
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.as_json import jsonable
from holdfast.values.tasks.records import TaskRecord

_out = Console(highlight=False)


def act_on(
    task_id: str,
    tenant: str,
    do: Callable[[TaskLedger, str], Awaitable[TaskRecord]],
    *,
    as_json: bool,
    describe: Callable[[TaskRecord], str] | None = None,
) -> None:
    """Run ``do`` on a task, given by its full or abbreviated id, and print the task."""

    async def found(ledger: TaskLedger) -> TaskRecord:
        return await do(ledger, await full_id(ledger, task_id))

    act(tenant, found, as_json=as_json, describe=describe)


def act(
    tenant: str,
    do: Callable[[TaskLedger], Awaitable[TaskRecord]],
    *,
    as_json: bool,
    describe: Callable[[TaskRecord], str] | None = None,
    creates: bool = False,
) -> None:
    """Run ``do`` on the ledger of a tenant, and print the task that it returns."""

    async def work() -> TaskRecord:
        async with open_shared(tenant, creates=creates) as state:
            return await do(state.tasks)

    task = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(task)))
        return
    if describe is not None:
        typer.echo(describe(task))
        return
    requested = [
        f"{what} requested"
        for what, asked in (("cancel", task.cancel_requested), ("pause", task.pause_requested))
        if asked
    ]
    asked = f" [dim]({', '.join(requested)})[/]" if requested else ""
    _out.print(f"{escape(task.id)} {state_mark(task.state)}{asked}", soft_wrap=True)
