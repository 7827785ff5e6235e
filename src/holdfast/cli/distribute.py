"""``holdfast db distribute``: divides the schema by tenant over the nodes of a Citus cluster."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from holdfast.wiring.admin import Administration

_out = Console()


def distribute(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing: show what is not distributed.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Also distribute tables that have rows: writes wait while they are copied.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Divide a migrated database by tenant over the nodes of a Citus cluster.

    Run it as a superuser on the coordinator, once the workers are added, and again after each
    `holdfast db migrate`. It is safe to repeat: distributed tables stay as they are, and if
    a run is killed, the next one continues. With --check the exit code is 1 if anything is left to
    do.

    For example:

        holdfast db distribute --check

        holdfast db distribute
    """

    def show(step: Any) -> None:
        if not as_json:
            _out.print(f"{step.kind} {step.name}: {step.wanted}", highlight=False)

    async def work() -> Any:
        admin = await Administration.open()
        try:
            if not check:
                await admin.distribute(move_rows=yes, progress=show)
            return await admin.distribution()
        finally:
            await admin.aclose()

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(_facts(found), indent=2))
    else:
        _print(found)
    raise typer.Exit(code=1 if found.missing else 0)


def _facts(found: Any) -> dict[str, Any]:
    return {
        "citus": found.version,
        "isolation": "by statement",
        "nodes": {node.name: node.shards for node in found.nodes},
        "missing": [
            {"kind": step.kind, "name": step.name, "wanted": step.wanted, "found": step.found}
            for step in found.missing
        ],
    }


def _print(found: Any) -> None:
    table = Table("node", "shards", title=f"Citus {found.version}", title_justify="left")
    for node in found.nodes:
        table.add_row(node.name, str(node.shards))
    _out.print(table)
    for step in found.missing:
        _out.print(f"[red]✗[/red] {step.kind} {step.name}: {step.found}, not {step.wanted}")
    if not found.missing:
        _out.print("[green]✓[/green] everything is distributed; isolation: by statement")
