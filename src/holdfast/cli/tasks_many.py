"""``holdfast tasks``: counts, workers, and commands for many tasks at once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.open_state import none_there, open_shared
from holdfast.cli.options import (
    Before,
    By,
    HeldBy,
    IdPrefix,
    Json,
    OfAgent,
    OfContext,
    OfOwner,
    Since,
    States,
    TaskId,
    Tenant,
    Text,
)
from holdfast.cli.task_ids import full_id
from holdfast.contracts.tasks.filters import TaskWhere
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.tasks.operations import COUNTED, MANY, MAX_MANY
from holdfast.values.as_json import jsonable
from holdfast.values.errors import ConfigError, InvalidInputError
from holdfast.values.formats import ago
from holdfast.values.owners import ANY_OWNER, Owner
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord

_out = Console(highlight=False)

Limit: TypeAlias = Annotated[
    int, typer.Option(min=0, max=MAX_MANY, help="For how many tasks at most.")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; print what would be done.")
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Note: TypeAlias = Annotated[str, typer.Option(help="Why; it is kept in the timelines.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group ``tasks``."""
    app.command("counts")(counts)
    app.command("workers")(workers)
    app.command("cancel-many")(cancel_many)
    app.command("pause-many")(pause_many)
    app.command("retry-many")(retry_many)
    app.command("delete")(delete)


def counts(
    *,
    by_agent: Annotated[bool, typer.Option("--by-agent", help="By agent, not by state.")] = False,
    state: States = None,
    agent: OfAgent = None,
    owner: OfOwner = None,
    context: OfContext = None,
    since: Since = None,
    before: Before = None,
    text: Text = None,
    limit: Annotated[int, typer.Option(min=0, help="How many to count at most.")] = COUNTED,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Count tasks by state, or by agent.

    For example:

        holdfast tasks counts --agent researcher

        holdfast tasks counts --by-agent --state failed
    """
    where = _where(state, agent, context, since=since, before=before, text=text)

    async def work() -> TaskCounts:
        async with open_shared(tenant) as opened:
            return await opened.tasks.counts(
                "agent" if by_agent else "state", owner=_owner(owner), limit=limit, **where
            )

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found)))
        return
    for name, count in found.counts.items():
        _out.print(f"{count:>9} {escape(name)}", soft_wrap=True)
    typer.echo(f"{found.total:>9} in all" + (", and more" if found.capped else ""))


def workers(*, tenant: Tenant = "", as_json: Json = False) -> None:
    """List the workers that hold tasks: how many, the last heartbeat, the version of their app."""

    async def work() -> list[WorkerRecord]:
        async with open_shared(tenant) as opened:
            return await opened.tasks.workers(owner=ANY_OWNER)

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found)))
        return
    if not found:
        typer.echo(none_there("workers that hold tasks", tenant))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("worker", "tasks", "last heartbeat", "lease ends", "version"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for one in found:
        beat = ago(one.last_heartbeat_at) if one.last_heartbeat_at else ""
        times = (beat, ago(one.lease_expires_at))
        table.add_row(escape(one.name), str(len(one.task_ids)), *times, escape(one.version))
    _out.print(table)


def cancel_many(
    *,
    state: States = None,
    agent: OfAgent = None,
    owner: OfOwner = None,
    context: OfContext = None,
    since: Since = None,
    before: Before = None,
    text: Text = None,
    id_prefix: IdPrefix = None,
    worker: HeldBy = None,
    note: Note = "",
    by: By = "",
    limit: Limit = MANY,
    dry_run: DryRun = False,
    yes: Yes = False,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Cancel all tasks that match the filters and have not ended; at least one filter is needed.

    For example:

        holdfast tasks cancel-many --agent researcher --before 2030-01-01 --dry-run
    """
    where = _where(
        *(state, agent, context),
        since=since,
        before=before,
        text=text,
        id_prefix=id_prefix,
        worker=worker,
    )
    _do(
        "cancel",
        lambda ledger, dry: ledger.cancel_many(
            owner=_owner(owner), note=note, by=by, limit=limit, dry_run=dry, **where
        ),
        where=where,
        tenant=tenant,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


def pause_many(
    *,
    state: States = None,
    agent: OfAgent = None,
    owner: OfOwner = None,
    context: OfContext = None,
    since: Since = None,
    before: Before = None,
    text: Text = None,
    id_prefix: IdPrefix = None,
    worker: HeldBy = None,
    note: Note = "",
    by: By = "",
    limit: Limit = MANY,
    dry_run: DryRun = False,
    yes: Yes = False,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Pause all tasks that match the filters and have not ended; at least one filter is needed.

    For example:

        holdfast tasks pause-many --agent researcher --note "the model is down" --yes
    """
    where = _where(
        *(state, agent, context),
        since=since,
        before=before,
        text=text,
        id_prefix=id_prefix,
        worker=worker,
    )
    _do(
        "pause",
        lambda ledger, dry: ledger.pause_many(
            owner=_owner(owner), note=note, by=by, limit=limit, dry_run=dry, **where
        ),
        where=where,
        tenant=tenant,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


def retry_many(
    *,
    state: States = None,
    agent: OfAgent = None,
    owner: OfOwner = None,
    context: OfContext = None,
    since: Since = None,
    before: Before = None,
    text: Text = None,
    id_prefix: IdPrefix = None,
    by: By = "",
    limit: Limit = MANY,
    dry_run: DryRun = False,
    yes: Yes = False,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Run all ended tasks that match the filters again, each once, as new tasks.

    For example:

        holdfast tasks retry-many --state failed --since 2030-01-01 --yes
    """
    where = _where(
        *(state, agent, context),
        since=since,
        before=before,
        text=text,
        id_prefix=id_prefix,
    )
    _do(
        "retry",
        lambda ledger, dry: ledger.retry_many(
            owner=_owner(owner), by=by, limit=limit, dry_run=dry, **where
        ),
        where=where,
        tenant=tenant,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


def delete(
    task_id: TaskId, *, yes: Yes = False, tenant: Tenant = "", as_json: Json = False
) -> None:
    """Delete a task for good, with its timeline, artifacts and files."""

    async def work() -> str:
        async with open_shared(tenant) as opened:
            found = await full_id(opened.tasks, task_id)
            await asyncio.to_thread(_confirm, f"delete task {found}", yes=yes)
            await opened.tasks.delete(found, owner=ANY_OWNER)
            return found

    found = asyncio.run(work())
    typer.echo(json.dumps({"deleted": found}) if as_json else f"deleted {found}")


def _do(
    what: str,
    act: Callable[[TaskLedger, bool], Awaitable[ManyTasks]],
    *,
    where: TaskWhere,
    tenant: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    if all(one is None for one in where.values()):
        raise InvalidInputError(
            "filter", "give at least one, such as --agent or --state: it is for many tasks"
        )

    async def work() -> ManyTasks:
        async with open_shared(tenant) as opened:
            found = await act(opened.tasks, True)  # noqa: FBT003 - a dry run
            if dry_run or not found.task_ids:
                return found
            more = " (and more)" if found.more else ""
            asked = f"{what} {found.matched} tasks{more}"
            await asyncio.to_thread(_confirm, asked, yes=yes)
            return await act(opened.tasks, False)  # noqa: FBT003 - not a dry run

    done = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(done)))
        return
    for task_id in done.new_task_ids or done.task_ids:
        typer.echo(task_id)
    verb = f"would {what}" if done.dry_run else what
    typer.echo(f"{verb}: {done.matched} tasks" + (", and there are more" if done.more else ""))


def _confirm(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"not a terminal: pass --yes to confirm ({what})")
    typer.confirm(f"{what}?", abort=True)


def _owner(owner: str | None) -> Owner:
    return ANY_OWNER if owner is None else owner


def _where(
    state: list[str] | None,
    agent: str | None,
    context: str | None,
    *,
    since: datetime | None,
    before: datetime | None,
    text: str | None = None,
    id_prefix: str | None = None,
    worker: str | None = None,
) -> TaskWhere:
    return {
        "states": state or None,
        "agent": agent,
        "session_id": context,
        "updated_after": since.astimezone() if since else None,
        "updated_before": before.astimezone() if before else None,
        "text": text,
        "id_prefix": id_prefix,
        "worker": worker,
    }
