"""``holdfast export``, ``import`` and ``copy``: move all data of a tenant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Json
from holdfast.wiring.archive_runs import ArchiveReport
from holdfast.wiring.archive_runs import Progress as Done
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.sealing import provider_named
from holdfast.wiring.settings import Settings

_err = Console(stderr=True)
Folder: TypeAlias = Annotated[Path, typer.Argument(help="The folder of the archive.")]
Whose: TypeAlias = Annotated[
    str, typer.Option("--tenant", help="HOLDFAST_TENANT, or 'default', unless given.")
]
Without: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--without", help="Leave out an attribute of the state; may be given again."),
]


def export(
    folder: Folder,
    *,
    tenant: Whose = "",
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
    it as safe as the database. What is sealed stays sealed, and the archive holds the data keys,
    wrapped by the keys of HOLDFAST_SEAL, or for a recipient.

    For example:

        holdfast export backup --tenant acme
    """
    provider = provider_named(Settings(seal=recipient)) if recipient else None

    async def work() -> ArchiveReport:
        async with open_shared(tenant) as state:
            with _bar() as advance:
                return await state.ops.archives.export(
                    folder, without=without or (), recipient=provider, progress=advance
                )

    _show(asyncio.run(work()), f"exported to {folder}", as_json=as_json)


def import_(
    folder: Folder,
    *,
    tenant: Whose = "",
    rename: Annotated[
        bool, typer.Option("--rename", help="Allow an archive of another tenant.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Load an archive into a tenant without data, and verify it.

    All of the archive is checked before anything is loaded, and afterwards all that is there is
    compared with it. If it is interrupted, run it again: it continues. Schedules and queued tasks
    run here from then on: stop the workers of the source, or they run twice.

    For example:

        holdfast import backup --tenant acme
    """

    async def work() -> ArchiveReport:
        async with open_shared(tenant, creates=True) as state:
            with _bar() as advance:
                return await state.ops.archives.load(folder, rename=rename, progress=advance)

    _show(asyncio.run(work()), f"imported from {folder}", as_json=as_json)


def copy(
    *,
    source: Annotated[
        str, typer.Option("--from", help="A URL or folder, as in holdfast.open; not 'memory:'.")
    ],
    target: Annotated[str, typer.Option("--to", help="A URL or folder, as in holdfast.open.")],
    tenant: Whose = "",
    without: Without = None,
    as_json: Json = False,
) -> None:
    """Copy all that a tenant holds from one database to another, and verify it.

    The tenant must have no data in the target. If it is interrupted, run it again: it continues.

    For example:

        holdfast copy --from .holdfast --to postgresql://app@db/main --tenant acme
    """

    async def work() -> ArchiveReport:
        async with (
            open_state(source, tenant=tenant or None, background=False) as state,
            open_state(target, tenant=tenant or None, background=False) as other,
        ):
            with _bar() as advance:
                return await state.ops.archives.copy_to(
                    other, without=without or (), progress=advance
                )

    _show(asyncio.run(work()), "copied", as_json=as_json)


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


def _show(report: ArchiveReport, what: str, *, as_json: bool) -> None:
    if as_json:
        kinds = {
            kind: {"records": count, "sha256": digest}
            for kind, (count, digest) in report.kinds.items()
        }
        facts = {"tenant": report.tenant, "kinds": kinds, "blobs": report.blobs}
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(
        f"{what}: {report.records:,} records and {report.blobs:,} blobs of tenant {report.tenant}"
    )
