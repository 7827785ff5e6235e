"""DBOS: no-op workflows from the queue to their result, with its own workers and with ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from benchmarks.peers.match import NOT_SLOWER, Calls, Line, Peer, Stage
from benchmarks.peers.queues import RATE
from benchmarks.peers.servers import holdfast_on
from holdfast.bench.queues import BODY
from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.runtime.worker import Worker
from holdfast.values.content import ChatMessage

BATCH = 100
WORKERS = 50
POLL_SECONDS = 0.02
_OURS_DONE = "SELECT count(*) FROM holdfast.tasks WHERE tenant = 'dbos' AND state = 'completed'"
_THEIRS_DONE = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"


class DbosWorkflows(Peer):
    """DBOS's queue and executor beside our worker: both run a function, and keep its outcome.

    DBOS claims by itself as soon as something is queued, so it is measured from the first call to
    the last outcome, and so are we. Both watch the same way: a connection that counts what is done.
    """

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
        app = App("bench")

        @app.handler(agent="bench")
        async def nothing(task: TaskContext) -> None:
            del task

        async with holdfast_on(stage.url, "dbos") as state:
            worker = Worker(app, state, concurrency=WORKERS, tenants=["dbos"])
            working = asyncio.create_task(worker.run())

            async def submit() -> None:
                await state.tasks.submit("bench", ChatMessage.user(BODY))

            try:
                async with _until_done(stage.url, _OURS_DONE, submit) as call:
                    yield {self.lines[0].operation: call}
            finally:
                worker.stop()
                await working

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from dbos import DBOS  # noqa: PLC0415 - optional

        logging.getLogger("dbos").setLevel(logging.ERROR)
        DBOS(config={"name": "bench", "system_database_url": stage.url, "log_level": "ERROR"})

        async def nothing(body: str) -> None:
            del body

        workflow = DBOS.workflow(name="nothing")(nothing)
        try:
            DBOS.launch()
            await DBOS.register_queue_async(
                "bench", worker_concurrency=WORKERS, polling_interval_sec=POLL_SECONDS
            )

            async def submit() -> None:
                await DBOS.enqueue_workflow_async("bench", workflow, BODY)

            async with _until_done(stage.url, _THEIRS_DONE, submit) as call:
                yield {self.lines[0].operation: call}
        finally:
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
            # It had put its own threads into the event loop, and has shut them down now.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


@asynccontextmanager
async def _until_done(
    url: str, count: str, submit: Callable[[], Awaitable[None]]
) -> AsyncIterator[Callable[[int], Awaitable[Any]]]:
    """A call that queues a batch and returns when all of it is done."""
    watcher = await asyncpg.connect(url)

    async def call(_number: int) -> None:
        goal = await watcher.fetchval(count) + BATCH
        for _ in range(BATCH):
            await submit()
        while await watcher.fetchval(count) < goal:  # noqa: ASYNC110 - only the table knows
            await asyncio.sleep(0.002)

    try:
        yield call
    finally:
        await watcher.close()
