"""DBOS: no-op workflows from the queue to their result, with its own workers and with ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.peers.match import NOT_SLOWER, Calls, Line, Peer, Stage
from benchmarks.peers.queues import RATE
from holdfast.bench.functions import POLL_SECONDS, WORKERS, Run, by_dbos, by_holdfast

BATCH = 100


class DbosWorkflows(Peer):
    """DBOS's queue and executor beside our worker: both run a function, and keep its outcome."""

    name = "DBOS"
    packages = ("dbos", "psycopg")
    install = "dbos"
    lines = (
        Line(
            f"queue and run {BATCH} no-op functions (DBOS)",
            f"tasks.submit, Worker(concurrency={WORKERS})",
            f"DBOS.enqueue_workflow, worker_concurrency={WORKERS}",
            NOT_SLOWER,
            f"{BATCH} tasks queued one by one, run and their outcome stored by a worker in the "
            f"process; its queue looks every {POLL_SECONDS * 1000:.0f} ms (its default is a "
            "second), also while ours has its turn",
            block=1,
            blocks=20,
            each=BATCH,
            unit=RATE,
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """A worker beside the client, in one process."""
        async with by_holdfast(stage.url) as run:
            yield self._calls(run)

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        async with by_dbos(stage.url) as run:
            yield self._calls(run)

    def _calls(self, run: Run) -> Calls:
        async def call(_number: int) -> None:
            await run(BATCH)

        return {self.lines[0].operation: call}
