"""``holdfast graph``: the graphs of tenants in Apache AGE."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from holdfast.values.checks import check_id
from holdfast.values.errors import NotSupportedError
from holdfast.wiring.engines import POSTGRES, engine_of_settings, load
from holdfast.wiring.settings import Settings

if TYPE_CHECKING:
    from holdfast_age.engine import Age

app = typer.Typer(help="Make and list the graphs of Apache AGE.", no_args_is_help=True)
_out = Console()

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@asynccontextmanager
async def _opened() -> AsyncIterator[Age]:
    settings = Settings.from_environment()
    if engine_of_settings(settings) is not POSTGRES:
        raise NotSupportedError(
            "embedded", "Apache AGE", why="set DATABASE_URL to a Postgres server that has AGE"
        )
    load(POSTGRES)
    from holdfast_age.engine import Age  # noqa: PLC0415 - needs the driver

    age = await Age.open(
        settings.database_url, max_connections=1, allow_unsafe=settings.allow_unsafe
    )
    try:
        yield age
    finally:
        await age.aclose()


@app.command()
def create(
    tenant: Annotated[str, typer.Argument(help="Whose graph it is.")],
    *,
    role: Annotated[str, typer.Option(help="Let this role read and write the graph.")] = "",
    as_json: Json = False,
) -> None:
    """Create the graph of a tenant. It is safe to run twice, and in several processes at once.

    Run it as a role that may create schemas in the database. The role of the running service needs
    no such privilege: name it with --role to let it read and write the graph, and nothing more.
    """
    check_id("tenant", tenant)

    async def work() -> bool:
        async with _opened() as age:
            return await age.create(tenant, role=role)

    new = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps({"tenant": tenant, "created": new}))
    else:
        _out.print("created" if new else "nothing to do: the graph is there", highlight=False)


@app.command("list")
def list_graphs(*, as_json: Json = False) -> None:
    """List the tenants that have a graph, with its name in AGE."""

    async def work() -> list[dict[str, str]]:
        async with _opened() as age:
            return [dataclasses.asdict(one) for one in await age.graphs()]

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(found))
        return
    table = Table("tenant", "graph")
    for one in found:
        table.add_row(one["tenant"], one["graph"])
    _out.print(table)
    if not found:
        _out.print("Run [bold]holdfast graph create TENANT[/bold].")
