"""``holdfast index``: indexes what agents recorded, so that recall need not do it."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from holdfast.cli.logs import start_logs
from holdfast.cli.monitoring import MetricsHost, MetricsPort, Monitoring
from holdfast.cli.open_state import open_shared
from holdfast.cli.worker import run_until_signal
from holdfast.runtime.indexing import POLL_SECONDS, Indexing
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.index")
_err = Console(stderr=True)


def index(
    *,
    once: Annotated[bool, typer.Option("--once", help="Index what waits now, then end.")] = False,
    poll_seconds: Annotated[
        float, typer.Option(min=0.01, help="How often it looks for new events.")
    ] = POLL_SECONDS,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Index the events of all tenants for recall by words, in a separate process.

    A recall indexes what waits before it searches, up to about 20,000 events. With an indexer it
    has nothing to do, and a role that may only read finds new events too. `holdfast worker` and
    `holdfast consolidate` index as well. You can run any number of indexers, and interrupt them
    at any time.

    For example:

        holdfast index --once

        holdfast index --log-json --metrics-port 9464
    """
    monitoring = Monitoring(host=metrics_host, port=metrics_port)
    start_logs(as_json=log_json)

    async def work() -> int:
        async with open_shared() as state:
            if once:
                typer.echo(f"indexed {await _drain(state):,} events")
                return 0
            _log.info("indexing")
            runs = Indexing(state.ops.index_pending, poll_seconds=poll_seconds)
            return await run_until_signal(monitoring.around(runs, state))

    raise typer.Exit(asyncio.run(work()))


async def _drain(state: State) -> int:
    """Index all waiting events, with a progress bar on a terminal. Returns how many."""
    with Progress(
        TextColumn("indexing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=_err,
        disable=not _err.is_terminal,
    ) as progress:
        bar = progress.add_task("indexing", total=await state.ops.unindexed_events())
        return await state.ops.index_pending(lambda count: progress.advance(bar, count))
