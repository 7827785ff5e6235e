"""``holdfast keys``: who may call the service, as whom."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.as_json import jsonable
from holdfast.cli.opening import open_shared
from holdfast.cli.options import Json
from holdfast.cli.words import clock
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.storage.keys import ApiKey, NewApiKey

app = typer.Typer(help="Make, list and revoke the API keys of the service.", no_args_is_help=True)
_out = Console()

Tenant = Annotated[
    str, typer.Option(help="Whose data it opens; HOLDFAST_TENANT, or 'default', unless given.")
]


@app.command()
def create(
    *,
    owner: Annotated[str, typer.Option(help="As whom its holder acts: the owner of their tasks.")],
    tenant: Tenant = "",
    name: Annotated[str, typer.Option(help="What to call it in lists.")] = "",
    as_json: Json = False,
) -> None:
    """Make a key. It is shown once, now: only its SHA-256 is stored.

    Its holder sends it as `Authorization: Bearer KEY`, and sees the tasks of its owner and tenant,
    no others.

    For example:

        holdfast keys create --tenant acme --owner ana --name laptop
    """

    async def work() -> NewApiKey:
        async with open_shared(tenant) as state:
            return await state.keys.create(owner, name=name)

    made = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(made.key) | {"text": made.text}))
        return
    # Plain, on a line of its own: to be copied, or read by $(…).
    typer.echo(made.text)
    Console(stderr=True).print(
        f"key {made.key.id} of tenant {escape(made.key.tenant)} for {escape(made.key.owner)}: "
        "keep it now, it is not shown again"
    )


@app.command(name="list")
def list_(*, tenant: Tenant = "", as_json: Json = False) -> None:
    """List the keys of a tenant, revoked ones too, the oldest first."""

    async def work() -> list[ApiKey]:
        async with open_shared(tenant) as state:
            return await state.keys.list_keys()

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found), indent=2))
        return
    table = Table("id", "owner", "name", "made", "revoked")
    for key in found:
        revoked = clock(key.revoked_at) if key.revoked_at else ""
        made = clock(key.created_at)
        table.add_row(key.id, escape(key.owner), escape(key.name), made, revoked)
    _out.print(table)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")],
    *,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """End a key for good, on every instance at once."""

    async def work() -> bool:
        async with open_shared(tenant) as state:
            return await state.keys.revoke(id)

    if not asyncio.run(work()):
        raise NotFoundError(
            "key", id, f"there is no live key {id!r} in this tenant: see `holdfast keys list`"
        )
    typer.echo(json.dumps({"revoked": id}) if as_json else f"revoked {id}")
