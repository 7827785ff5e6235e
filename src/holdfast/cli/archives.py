"""``holdfast export``, ``import`` and ``copy``: move all data of a tenant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Json
from holdfast.wiring.archive_runs import ArchiveReport
from holdfast.wiring.archive_runs import Progress as Done
from holdfast.wiring.archive_tenants import (
    archived_tenants,
    begin_archives,
    every_tenant,
    finish_archives,
    tenant_folder,
)
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.sealing import provider_named
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

_err = Console(stderr=True)
Folder: TypeAlias = Annotated[Path, typer.Argument(help="The folder of the archive.")]
Whose: TypeAlias = Annotated[
    str, typer.Option("--tenant", help="HOLDFAST_TENANT, or 'default', unless given.")
]
AllTenants: TypeAlias = Annotated[
    bool, typer.Option("--all-tenants", help="Every tenant, each in a folder of its own.")
]
Without: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--without", help="Leave out an attribute of the state; may be given again."),
]


def export(
    folder: Folder,
    *,
    tenant: Whose = "",
    all_tenants: AllTenants = False,
    without: Without = None,
    recipient: Annotated[
        str,
        typer.Option(
            help="file:/path/of/keys: wrap the data keys of a sealed tenant by its first key."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Write all that a tenant holds into a folder: JSON lines, and blobs by their digest.

    It reads one snapshot while agents work. If it is interrupted, run it again: it continues in
    the same folder. The archive holds the digests of API keys and the tokens of push configs: keep
    it as safe as the database. Sealed content stays sealed: the archive holds its data keys,
    wrapped by the keys of HOLDFAST_SEAL, or for a recipient.

    For example:

        holdfast export backup --tenant acme
    """
    provider = provider_named(Settings(seal=recipient)) if recipient else None

    _check_tenants(tenant, all_tenants=all_tenants)

    async def one(view: State, place: Path) -> ArchiveReport:
        with _bar() as advance:
            return await view.ops.archives.export(
                place, without=without or (), recipient=provider, progress=advance
            )

    async def work() -> list[ArchiveReport]:
        async with open_shared(tenant) as state:
            if not all_tenants:
                return [await one(state, folder)]
            await begin_archives(folder)
            reports = [
                await one(view, tenant_folder(folder, view.tenant))
                async for view in every_tenant(state)
            ]
            await finish_archives(folder, [report.tenant for report in reports])
            return reports

    reports = asyncio.run(work())
    _show(reports, f"exported to {folder}", as_json=as_json, several=all_tenants)


def import_(
    folder: Folder,
    *,
    tenant: Whose = "",
    all_tenants: AllTenants = False,
    rename: Annotated[
        bool, typer.Option("--rename", help="Allow an archive of another tenant.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Load an archive into a tenant without data, and verify it.

    The whole archive is checked before anything is loaded. Afterwards the loaded data is compared
    with it. If it is interrupted, run it again: it continues. Loaded schedules and queued tasks run
    from then on: stop the workers of the source, or they run twice.

    For example:

        holdfast import backup --tenant acme
    """
    _check_tenants(tenant, all_tenants=all_tenants)
    if rename and all_tenants:
        raise typer.BadParameter("cannot be combined with --rename", param_hint="--all-tenants")

    async def one(view: State, place: Path) -> ArchiveReport:
        with _bar() as advance:
            return await view.ops.archives.load(place, rename=rename, progress=advance)

    async def work() -> list[ArchiveReport]:
        async with open_shared(tenant, creates=True) as state:
            if not all_tenants:
                return [await one(state, folder)]
            return [
                await one(state.for_tenant(name), place) for name, place in archived_tenants(folder)
            ]

    reports = asyncio.run(work())
    _show(reports, f"imported from {folder}", as_json=as_json, several=all_tenants)


def copy(
    *,
    source: Annotated[
        str, typer.Option("--from", help="A URL or folder, as in holdfast.open; not 'memory:'.")
    ],
    target: Annotated[str, typer.Option("--to", help="A URL or folder, as in holdfast.open.")],
    tenant: Whose = "",
    all_tenants: AllTenants = False,
    without: Without = None,
    as_json: Json = False,
) -> None:
    """Copy all that a tenant holds from one database to another, and verify it.

    The tenant must have no data in the target. If it is interrupted, run it again: it continues.

    For example:

        holdfast copy --from .holdfast --to postgresql://app@db/main --tenant acme
    """
    _check_tenants(tenant, all_tenants=all_tenants)

    async def one(view: State, other: State) -> ArchiveReport:
        with _bar() as advance:
            return await view.ops.archives.copy_to(other, without=without or (), progress=advance)

    async def work() -> list[ArchiveReport]:
        async with (
            open_state(source, tenant=tenant or None, background=False) as state,
            open_state(target, tenant=tenant or None, background=False) as other,
        ):
            if not all_tenants:
                return [await one(state, other)]
            return [
                await one(view, other.for_tenant(view.tenant)) async for view in every_tenant(state)
            ]

    _show(asyncio.run(work()), "copied", as_json=as_json, several=all_tenants)


def _check_tenants(tenant: str, *, all_tenants: bool) -> None:
    if tenant and all_tenants:
        raise typer.BadParameter("cannot be combined with --tenant", param_hint="--all-tenants")


@contextmanager
def _bar() -> Iterator[Callable[[Done], None]]:
    """Show a progress bar if standard error is a terminal."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=_err,
        disable=not _err.is_terminal,
    ) as progress:
        bar = progress.add_task("", total=None)

        def advance(done: Done) -> None:
            progress.update(
                bar,
                description=f"{done.phase} {done.kind}",
                completed=done.records,
                total=done.total or None,
            )

        yield advance


def _show(
    reports: Sequence[ArchiveReport], what: str, *, as_json: bool, several: bool = False
) -> None:
    if as_json:
        facts = [_facts(one) for one in reports]
        typer.echo(json.dumps(facts if several else facts[0], indent=2))
        return
    for report in reports:
        typer.echo(
            f"{what}: {report.records:,} records and {report.blobs:,} blobs "
            f"of tenant {report.tenant}"
        )


def _facts(report: ArchiveReport) -> dict[str, Any]:
    kinds = {
        kind: {"records": count, "sha256": digest} for kind, (count, digest) in report.kinds.items()
    }
    return {"tenant": report.tenant, "kinds": kinds, "blobs": report.blobs}
