"""``holdfast keys``: manages the API keys of the service."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.open_state import none_there, open_shared
from holdfast.cli.options import Json
from holdfast.cli.task_ids import matching, short_ids
from holdfast.contracts.keys import KeyStore
from holdfast.values.as_json import jsonable
from holdfast.values.errors import NotFoundError
from holdfast.values.formats import ago
from holdfast.values.keys import ApiKey, KeyScope, NewApiKey

app = typer.Typer(
    help="The API keys of the service, and the keys of sealed mode.", no_args_is_help=True
)
_out = Console()

Tenant = Annotated[
    str, typer.Option(help="The tenant of the keys; HOLDFAST_TENANT, or 'default', unless given.")
]
AllTenants = Annotated[bool, typer.Option("--all-tenants", help="The keys of every tenant.")]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="The key's id, or its end, as `keys list` has it.")
]
_DAY_SECONDS = 86_400


@app.command()
def create(
    *,
    owner: Annotated[str, typer.Option(help="The owner as whom its holder acts.")],
    tenant: Tenant = "",
    name: Annotated[str, typer.Option(help="What to call it in lists.")] = "",
    scope: Annotated[
        KeyScope, typer.Option(help="What its holder may do: change, only read, or operate.")
    ] = KeyScope.OWNER,
    days: Annotated[
        float | None, typer.Option(min=0.0, help="How many days it lasts; for ever unless given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create an API key and print it. Copy it now: only its SHA-256 is stored.

    A client sends it as `Authorization: Bearer KEY`, and can use only the tasks of the key's owner
    and tenant. A key with the scope reader can get, list and watch tasks, and change nothing. One
    with the scope operator can also read the tasks of every owner of the tenant, and /metrics.

    For example:

        holdfast keys create --tenant acme --owner ana --name laptop --days 90

        holdfast keys create --tenant acme --owner prometheus --scope operator
    """

    async def work() -> NewApiKey:
        async with open_shared(tenant, creates=True) as state:
            return await state.keys.create(
                owner,
                name=name,
                scope=scope,
                ttl_seconds=None if days is None else days * _DAY_SECONDS,
            )

    _show(asyncio.run(work()), as_json=as_json)


def _show(made: NewApiKey, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(jsonable(made.key) | {"text": made.text}))
        return
    # Plain and on a separate line, to be copied or captured by $(…).
    typer.echo(made.text)
    Console(stderr=True).print(
        f"key {made.key.id} of tenant {escape(made.key.tenant)} for {escape(made.key.owner)}: "
        "keep it now, it is not shown again"
    )


@app.command()
def rotate(
    id: Id,
    *,
    grace: Annotated[
        float, typer.Option(min=0.0, help="How many seconds the old key stays valid.")
    ] = 3600.0,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Replace a key by a new one with the same owner, name, scope and lifetime; the old one ends.

    For example:

        holdfast keys rotate 01a1e184-… --tenant acme --grace 600
    """

    async def work() -> NewApiKey:
        async with open_shared(tenant) as state:
            try:
                return await state.keys.rotate(await _whole(state.keys, id), grace_seconds=grace)
            except NotFoundError:
                raise _no_key(id, "live key") from None

    _show(asyncio.run(work()), as_json=as_json)


@app.command(name="rotate-kek")
def rotate_kek(*, tenant: Tenant = "", all_tenants: AllTenants = False) -> None:
    """Wrap the data keys of an encrypted tenant with the first key of HOLDFAST_SEAL.

    No content is read or written. The keys that were used before must still be there, after the
    first one; when this command has ended for every tenant, remove and destroy them. If it is
    interrupted, run it again.

    For example:

        HOLDFAST_SEAL=file:/etc/holdfast/keys holdfast keys rotate-kek --all-tenants
    """
    if tenant and all_tenants:
        raise typer.BadParameter("cannot be combined with --tenant", param_hint="--all-tenants")

    async def work() -> int:
        async with open_shared(tenant) as state:
            return await state.ops.rotate_kek(all_tenants=all_tenants)

    typer.echo(f"rewrapped {asyncio.run(work()):,} data keys")


@app.command(name="rotate-dek")
def rotate_dek(
    *,
    tenant: Tenant = "",
    older_than_days: Annotated[
        float | None, typer.Option(min=0.0, help="Only the keys that are so many days old.")
    ] = None,
) -> None:
    """Replace the data keys of an encrypted tenant: new content is encrypted with new keys.

    Existing content stays readable with its old keys. An erasure destroys all keys of its subject.
    Values that are compared when they are encrypted, such as topics, keep the first key. If it is
    interrupted, run it again; with --older-than-days it skips the keys that it has replaced.

    For example:

        HOLDFAST_SEAL=file:/etc/holdfast/keys holdfast keys rotate-dek --older-than-days 30
    """

    async def work() -> int:
        async with open_shared(tenant) as state:
            age = older_than_days * _DAY_SECONDS if older_than_days else None
            return await state.ops.rotate_dek(older_than_seconds=age)

    typer.echo(f"replaced {asyncio.run(work()):,} data keys")


@app.command(name="list")
def list_(*, tenant: Tenant = "", as_json: Json = False) -> None:
    """List the keys of a tenant, including revoked and expired ones, oldest first."""

    async def work() -> list[ApiKey]:
        async with open_shared(tenant) as state:
            return await state.keys.list_keys()

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found), indent=2))
        return
    if not found:
        typer.echo(none_there("keys", tenant))
        return
    ids = short_ids([key.id for key in found])
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("id", no_wrap=True, min_width=max(map(len, ids.values()), default=2))
    for name in ("owner", "name", "scope", "made", "last used", "expires", "revoked"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for key in found:
        times = (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)
        table.add_row(
            *(ids[key.id], escape(key.owner), escape(key.name), str(key.scope)),
            *(ago(one) if one else "" for one in times),
        )
    _out.print(table)


@app.command()
def revoke(
    id: Id,
    *,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Revoke a key for good, on every instance at once."""

    async def work() -> bool:
        async with open_shared(tenant) as state:
            return await state.keys.revoke(await _whole(state.keys, id))

    if not asyncio.run(work()):
        raise _no_key(id, "live key")
    typer.echo(json.dumps({"revoked": id}) if as_json else f"revoked {id}")


@app.command()
def delete(id: Id, *, tenant: Tenant = "", as_json: Json = False) -> None:
    """Delete a revoked or expired key from the list for good."""

    async def work() -> bool:
        async with open_shared(tenant) as state:
            return await state.keys.delete(await _whole(state.keys, id))

    if not asyncio.run(work()):
        raise _no_key(id, "revoked or expired key")
    typer.echo(json.dumps({"deleted": id}) if as_json else f"deleted {id}")


async def _whole(keys: KeyStore, given: str) -> str:
    """Return the full id of a key, given in full or by a beginning or end that is unique."""
    return matching(given, [key.id for key in await keys.list_keys()]) or given


def _no_key(id: str, what: str) -> NotFoundError:
    return NotFoundError(
        "key", id, f"there is no {what} {id!r} in this tenant: see `holdfast keys list`"
    )
