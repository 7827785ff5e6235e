"""``holdfast dead-letters``: events that Postgres refused to store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.open_state import check_folder, none_there, shared_settings
from holdfast.cli.options import Json
from holdfast.spi.hybrid.durable_log import DeadLetter
from holdfast.values.errors import NotFoundError
from holdfast.values.formats import clock
from holdfast.wiring.dead_letters import get_dead_letter, replay_dead_letter
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.state import State

app = typer.Typer(
    help="List events that could not be stored, and store or discard them.",
    no_args_is_help=True,
)
_out = Console()
T = TypeVar("T")

Tenant = Annotated[
    str, typer.Option(help="Whose events; HOLDFAST_TENANT, or 'default', unless given.")
]
LetterId = Annotated[str, typer.Argument(metavar="ID", help="As `dead-letters list` shows it.")]


def _with_state(tenant: str, work: Callable[[State], Awaitable[T]]) -> T:
    async def run() -> T:
        settings = shared_settings()
        check_folder(settings)
        async with open_state(settings=settings, tenant=tenant or None, background=False) as state:
            return await work(state)

    return asyncio.run(run())


@app.command(name="list")
def list_(*, tenant: Tenant = "", as_json: Json = False) -> None:
    """List the events that could not be stored, oldest first."""

    async def work(state: State) -> list[DeadLetter]:
        found: list[DeadLetter] = []
        while page := await state.ops.hybrid.durable.dead_letters(
            state.tenant, limit=500, after=found[-1].id if found else ""
        ):
            found += page
        return found

    letters = _with_state(tenant, work)
    if as_json:
        typer.echo(json.dumps([_facts(one) for one in letters], indent=2))
        return
    if not letters:
        typer.echo(none_there("dead letters", tenant))
        return
    table = Table("id", "session", "event", "position", "failed", "why")
    for one in letters:
        position = f"{one.epoch}.{one.seq}"
        names = (escape(one.session), escape(one.event_id))
        table.add_row(one.id, *names, position, clock(one.failed_at), escape(one.reason))
    _out.print(table)


@app.command()
def show(id: LetterId, *, tenant: Tenant = "", as_json: Json = False) -> None:
    """Show one dead letter, with its original bytes."""
    letter = _with_state(tenant, lambda state: get_dead_letter(state, id))
    if as_json:
        typer.echo(json.dumps(_facts(letter), indent=2))
        return
    for name, value in _facts(letter).items():
        typer.echo(f"{name}: {value}")


@app.command()
def replay(id: LetterId, *, tenant: Tenant = "") -> None:
    """Store a dead letter after its cause is fixed: at its original position if that is free."""
    epoch, seq = _with_state(tenant, lambda state: replay_dead_letter(state, id))
    typer.echo(f"stored at {epoch}.{seq}")


@app.command()
def discard(id: LetterId, *, tenant: Tenant = "") -> None:
    """Delete a dead letter for good, with its bytes."""

    async def work(state: State) -> None:
        if not await state.ops.hybrid.durable.discard(state.tenant, id):
            raise NotFoundError("dead letter", id)

    _with_state(tenant, work)
    typer.echo("discarded")


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "session": letter.session,
        "event_id": letter.event_id,
        "epoch": letter.epoch,
        "seq": letter.seq,
        "failed_at": letter.failed_at.isoformat(),
        "reason": letter.reason,
        "payload": letter.payload.decode("utf-8", "backslashreplace"),
        "payload_hex": letter.payload.hex(),
    }
