"""``holdfast schedules``: shows the schedules of tasks and changes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.open_state import none_there, open_shared
from holdfast.cli.options import Json
from holdfast.contracts.schedules import ScheduleStore
from holdfast.spi.schedules import no_schedule
from holdfast.values.as_json import jsonable
from holdfast.values.formats import ago
from holdfast.values.owners import ANY_OWNER
from holdfast.values.schedules import GRACE_SECONDS, MISSED_LIMIT, Missed, ScheduleRecord

app = typer.Typer(
    help="Make, list, pause, resume and delete the schedules of tasks.", no_args_is_help=True
)
_out = Console(highlight=False)

Id = Annotated[str, typer.Argument(metavar="ID", help="The schedule's id.")]
Whose = Annotated[
    str, typer.Option("--owner", help="The schedule's owner; unless given, it has none.")
]
Tenant = Annotated[
    str, typer.Option(help="Whose schedules; HOLDFAST_TENANT, or 'default', unless given.")
]


@app.command()
def create(
    id: Id,
    cron: Annotated[
        str, typer.Argument(help="Minute, hour, day, month, weekday: '0 9 * * mon-fri'.")
    ],
    agent: Annotated[str, typer.Argument(help="The agent that runs its tasks.")],
    text: Annotated[str, typer.Argument(help="The first message of its tasks.")],
    *,
    timezone: Annotated[str, typer.Option(help="The time zone of the expression.")] = "UTC",
    missed: Annotated[
        Missed, typer.Option(help="What happens to ticks while no worker ran.")
    ] = Missed.ONCE,
    missed_limit: Annotated[
        int, typer.Option(min=1, max=1000, help="How many missed ticks 'all' catches up with.")
    ] = MISSED_LIMIT,
    grace: Annotated[
        float, typer.Option(help="How many seconds a tick may be late before 'skip' drops it.")
    ] = GRACE_SECONDS,
    context: Annotated[str, typer.Option(help="One conversation for all its tasks.")] = "",
    owner: Whose = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the schedule of this id, if there is one.")
    ] = False,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Create a schedule: at each tick a worker submits a task.

    For example:

        holdfast schedules create daily "0 9 * * mon-fri" reporter "Write the report"
        --timezone Europe/Paris
    """

    async def put(store: ScheduleStore) -> ScheduleRecord:
        return await (store.upsert if replace else store.create)(
            id,
            cron,
            agent=agent,
            message=text,
            timezone=timezone,
            missed=missed,
            missed_limit=missed_limit,
            grace_seconds=grace,
            session_id=context,
            owner=owner,
        )

    _act(tenant, put, as_json=as_json, creates=True)


@app.command("list")
def list_schedules(
    *,
    owner: Annotated[
        str | None, typer.Option(help="Only of this owner; '' for those without one.")
    ] = None,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """List the schedules of a tenant, by owner and id."""

    async def work() -> list[ScheduleRecord]:
        async with open_shared(tenant) as state:
            found: list[ScheduleRecord] = []
            while page := await state.schedules.list(
                owner=ANY_OWNER if owner is None else owner,
                limit=1000,
                after=found[-1] if found else None,
            ):
                found += page
            return found

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found), indent=2))
        return
    if not found:
        typer.echo(none_there("schedules", tenant, filtered=owner is not None))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("id", "owner", "cron", "timezone", "agent", "missed", "last run", "next run"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for one in found:
        table.add_row(
            *(escape(text) for text in (one.id, one.owner, one.cron, one.timezone)),
            *(escape(str(one.agent)), str(one.missed)),
            ago(one.last_run_at) if one.last_run_at else "",
            "paused" if one.paused else ago(one.next_run_at) if one.next_run_at else "never",
        )
    _out.print(table)


@app.command()
def show(
    id: Id,
    *,
    count: Annotated[int, typer.Option(min=0, max=1000, help="How many next runs.")] = 5,
    owner: Whose = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Show a schedule and its next runs, in its time zone."""

    async def work() -> tuple[ScheduleRecord, list[str]]:
        async with open_shared(tenant) as state:
            found = await state.schedules.get(id, owner=owner)
            if found is None:
                raise no_schedule(id)
            ticks = await state.schedules.next_runs(id, count, owner=owner)
            zone = ZoneInfo(found.timezone)
            return found, [tick.astimezone(zone).isoformat() for tick in ticks]

    found, ticks = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps({**jsonable(found), "next_runs": ticks}, indent=2))
        return
    _show(found)
    for tick in ticks:
        typer.echo(f"  {tick}")


@app.command()
def pause(id: Id, *, owner: Whose = "", tenant: Tenant = "", as_json: Json = False) -> None:
    """Pause a schedule: it makes no tasks until it is resumed."""
    _act(tenant, lambda store: store.pause(id, owner=owner), as_json=as_json)


@app.command()
def resume(id: Id, *, owner: Whose = "", tenant: Tenant = "", as_json: Json = False) -> None:
    """Resume a paused schedule. Ticks during the pause make no tasks."""
    _act(tenant, lambda store: store.resume(id, owner=owner), as_json=as_json)


@app.command()
def delete(id: Id, *, owner: Whose = "", tenant: Tenant = "", as_json: Json = False) -> None:
    """Delete a schedule. Its tasks stay."""

    async def work() -> bool:
        async with open_shared(tenant) as state:
            return await state.schedules.delete(id, owner=owner)

    if not asyncio.run(work()):
        raise no_schedule(id)
    typer.echo(json.dumps({"deleted": id}) if as_json else f"deleted {id}")


def _act(
    tenant: str,
    act: Callable[[ScheduleStore], Awaitable[ScheduleRecord]],
    *,
    as_json: bool,
    creates: bool = False,
) -> None:
    async def work() -> ScheduleRecord:
        async with open_shared(tenant, creates=creates) as state:
            return await act(state.schedules)

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found)))
        return
    _show(found)


def _show(found: ScheduleRecord) -> None:
    when = "paused" if found.paused else "never due again"
    if found.next_run_at is not None:
        when = f"next run {ago(found.next_run_at)}"
    _out.print(
        f"[bold]{escape(found.id)}[/] {escape(found.cron)} {escape(found.timezone)} for "
        f"{escape(str(found.agent))}: {when}",
        soft_wrap=True,
    )
