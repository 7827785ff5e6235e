"""``holdfast chaos``: the fault runs, for anyone to repeat."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from holdfast.chaos.tasks import TaskFaults, TaskRun

_out = Console()


def chaos(
    *,
    seconds: Annotated[float, typer.Option(min=5, help="How long faults go on, about.")] = 60,
    seed: Annotated[int, typer.Option(help="The same seed is the same schedule of faults.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Kill workers and Postgres while they work, then check every invariant.

    Starts a Postgres and workers of its own in temporary folders; nothing of yours is touched.
    Workers are killed with SIGKILL and frozen past their leases, and Postgres is killed and
    restarted, at random moments of a schedule that the seed fixes. Afterwards every task must be
    completed once, its steps stored once, its artifact byte for byte what it should be, and no
    write of a worker that had lost its lease may have counted. Exit code 0 if all of that holds, 1
    with the broken invariant if not.
    """
    with nullcontext() if as_json else _out.status("starting") as shown:
        progress = shown.update if shown is not None else (lambda _text: None)
        run = TaskRun(TaskFaults.within(seconds, seed=seed), progress)
        try:
            facts = asyncio.run(run.run()).to_json() | {"verdict": "held", "seed": seed}
        except AssertionError as broken:
            facts = {"verdict": f"broken: {broken}", "seed": seed}
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        _out.print(_table(facts))
    if facts["verdict"] != "held":
        raise typer.Exit(1)


def _table(facts: dict[str, Any]) -> Table:
    table = Table("tasks under fire", "", title_justify="left")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), str(value))
    return table
