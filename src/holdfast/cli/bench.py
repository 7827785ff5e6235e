"""``holdfast bench``: measurements beside the bare driver."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from holdfast.bench import stores as stores_bench

app = typer.Typer(help="Measure Holdfast beside the bare driver.", no_args_is_help=True)
_out = Console()


@app.callback()
def bench() -> None:
    """Measure Holdfast beside the bare driver, in interleaved blocks of one process."""


@app.command()
def stores(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quick: Annotated[bool, typer.Option(help="Fewer blocks: seconds instead of minutes.")] = False,
) -> None:
    """Every hot call of the Postgres engine against the bare statement doing the same work.

    Starts a Postgres of its own in a temporary folder. The ratio is that of the medians; round
    trips are counted on the wire. Run it on an idle machine.
    """
    with _out.status("starting", spinner="dots") as shown:
        report = asyncio.run(stores_bench.run(shown.update, quick=quick))
    facts = {
        "command": "holdfast bench stores" + (" --quick" if quick else ""),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {sys.platform}",
        "asyncpg": version("asyncpg"),
        **report.to_json(),
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    table = Table("call", "p50 µs", "p95 µs", "floor p50", "ratio", "bar", "round trips")
    for one in report.results:
        mark = "[green]" if one.met else "[red]"
        table.add_row(
            one.name,
            f"{one.ours_p50:,.0f}",
            f"{one.ours_p95:,.0f}",
            f"{one.floor_p50:,.0f}",
            f"{mark}{one.ratio:.2f}[/]",
            f"{one.bar:.1f}",
            f"{one.round_trips:g}",
        )
    _out.print(table)
    _out.print(f"append at length 10,000 against length 10: {report.growth:.2f}")
    _out.print(f"fidelity@5 of recall by vector against exact search: {report.fidelity:.3f}")
    _out.print(f"from kill -9 of Postgres to the next append: {report.recovery_seconds:.2f} s")
