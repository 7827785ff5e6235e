"""``holdfast tasks changes``: the feed of changes of tasks."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Json, OfOwner, Tenant
from holdfast.contracts.tasks.changes import MAX_CHANGES, NOW
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.as_json import jsonable
from holdfast.values.owners import ANY_OWNER, Owner
from holdfast.values.tasks.changes import TaskChange, TaskChanges

_out = Console(highlight=False)
_err = Console(highlight=False, stderr=True)


def add_to(app: typer.Typer) -> None:
    """Add the command to the group ``tasks``."""
    app.command("changes")(changes)


def changes(
    *,
    after: Annotated[
        str, typer.Option(help="Begin after this cursor, or after 'now'; default: the oldest.")
    ] = "",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until Ctrl-C; begins now, unless --after.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=MAX_CHANGES, help="How many changes to read at a time.")
    ] = 100,
    poll_seconds: Annotated[
        float, typer.Option(min=0.05, help="With --follow: how often to look.")
    ] = 1.0,
    owner: OfOwner = None,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Print the changes of state of tasks, each once, none missed.

    Without --follow it prints one page, and the cursor of the next one on standard error. With
    --json it prints one object per line; the last line of a page is the cursor.

    For example:

        holdfast tasks changes --follow

        holdfast tasks changes --after WzEyMyx0MSwyXQ== --json
    """
    whose = ANY_OWNER if owner is None else owner

    async def work() -> None:
        async with open_shared(tenant) as state:
            begin = after or (NOW if follow else None)
            await _read(
                state.tasks,
                begin,
                whose,
                limit,
                poll_seconds if follow else None,
                as_json=as_json,
            )

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        # Ctrl-C ends the feed; the tasks are not affected.
        raise typer.Exit(0) from None


async def _read(
    ledger: TaskLedger,
    after: str | None,
    owner: Owner,
    limit: int,
    poll_seconds: float | None,
    *,
    as_json: bool,
) -> None:
    """Print one page, or all pages until the process is stopped."""
    while True:
        page = await ledger.changes(after, owner=owner, limit=limit)
        _print(page, as_json=as_json)
        if poll_seconds is None:
            return
        after = page.cursor
        if not page.more:
            await asyncio.sleep(poll_seconds)


def _print(page: TaskChanges, *, as_json: bool) -> None:
    for change in page.changes:
        if as_json:
            typer.echo(json.dumps(jsonable(change)))
        else:
            _out.print(_line(change), soft_wrap=True)
    if as_json:
        typer.echo(json.dumps({"cursor": page.cursor, "more": page.more}))
    else:
        _err.print(f"[dim]cursor {page.cursor}[/]", soft_wrap=True)


def _line(change: TaskChange) -> str:
    was = f"{change.from_state} to " if change.from_state else ""
    who = f" by {escape(change.by_name)}" if change.by_name else ""
    when = change.at.astimezone().strftime("%H:%M:%S")
    return (
        f"[dim]{when}[/] {change.task_id} {escape(str(change.agent))}: {was}{change.to_state}{who}"
    )
