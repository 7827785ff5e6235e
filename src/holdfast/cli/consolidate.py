"""``holdfast consolidate``: copies what agents recorded from Redis to Postgres."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

import typer

from holdfast.cli.logs import start_logs
from holdfast.cli.monitoring import MetricsHost, MetricsPort, Monitoring
from holdfast.cli.open_state import opened, shared_settings
from holdfast.cli.worker import run_until_signal
from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.runtime.indexing import Indexing
from holdfast.wiring.front_door import open as open_state

_log = logging.getLogger("holdfast.consolidation")
DRAIN_SECONDS = 30.0
"""How long it flushes after SIGTERM. Events that remain are safe in Redis."""


def consolidate(
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Copy what is in Redis now, then end.")
    ] = False,
    wait_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long it waits for a Postgres or Redis to come up.")
    ] = 60.0,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Copy what agents recorded from Redis (REDIS_URL) to Postgres (DATABASE_URL).

    Processes that open both do this in the background, unless HOLDFAST_BACKGROUND=0. You can run
    any number of consolidators: they share the shards, and if one dies the others take its shards
    over. On SIGTERM or Ctrl-C it drains and ends with exit code 0. It waits for a server that is
    not up yet.

    For example:

        holdfast consolidate --log-json --metrics-port 9464
    """
    monitoring = Monitoring(host=metrics_host, port=metrics_port)
    start_logs(as_json=log_json)

    async def work() -> int:
        settings = shared_settings()
        async with await opened(
            lambda: open_state(settings=settings, background=False), wait_seconds=wait_seconds
        ) as state:
            consolidator = state.ops.hybrid.consolidator
            if once:
                await consolidator.drain()
                typer.echo(f"{consolidator.metrics.flushed} events are in Postgres now")
                return 0
            _log.info("consolidating")
            runs = Indexing(state.ops.index_pending, runs=_Run(consolidator))
            return await run_until_signal(monitoring.around(runs, state))

    raise typer.Exit(asyncio.run(work()))


class _Run:
    """A consolidator that runs until ``stop`` is called, then flushes what is left."""

    def __init__(self, consolidator: Consolidator) -> None:
        self._consolidator = consolidator
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Stop consolidating, and flush what is left."""
        self._stop.set()

    async def run(self) -> None:
        """Run until ``stop`` is called, then flush what is left."""
        await self._consolidator.run(self._stop)
        done = await self._consolidator.drain(limit_seconds=DRAIN_SECONDS)
        flushed = self._consolidator.metrics.flushed
        _log.info("drained" if done else "stopped, and more is waiting", extra={"flushed": flushed})
