"""Measures no-op functions from queueing to their result: by our worker, and by DBOS if installed.

DBOS starts a function as soon as it is queued, so both are measured from the first call to the last
result. Both are observed in the same way: a connection that counts the finished functions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import asyncpg

from holdfast.bench.queues import BODY
from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.runtime.worker import Worker
from holdfast.values.content import ChatMessage
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings

WORKERS = 50
POLL_SECONDS = 0.02
TENANT = "functions"
_OURS_DONE = (
    "SELECT count(*) FROM holdfast.tasks WHERE tenant = 'functions' AND state = 'completed'"
)
_THEIRS_DONE = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"

Run = Callable[[int], Awaitable[None]]
"""Queues this many functions one by one, and returns when all have run."""


@asynccontextmanager
async def by_holdfast(url: str) -> AsyncIterator[Run]:
    """Run a Holdfast worker and a client in this process.

    ::

        async with by_holdfast(url) as run:
            await run(100)
    """
    app = App("bench")

    @app.handler(agent="bench")
    async def nothing(task: TaskContext) -> None:
        del task

    settings = Settings(auto_migrate=True)
    async with open_state(url, tenant=TENANT, settings=settings, background=False) as state:
        worker = Worker(app, state, concurrency=WORKERS, tenants=[TENANT])
        working = asyncio.create_task(worker.run())

        async def submit() -> None:
            await state.tasks.submit("bench", ChatMessage.user(BODY))

        try:
            async with _until_done(url, _OURS_DONE, submit) as run:
                yield run
        finally:
            worker.stop()
            await working


@asynccontextmanager
async def by_dbos(url: str) -> AsyncIterator[Run]:
    """Run the same work on DBOS, whose queue is set to poll every 20 ms instead of every second.

    ::

        async with by_dbos(url) as run:
            await run(100)
    """
    from dbos import DBOS  # noqa: PLC0415 - optional

    logging.getLogger("dbos").setLevel(logging.ERROR)
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})

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

        async with _until_done(url, _THEIRS_DONE, submit) as run:
            yield run
    finally:
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
        # It had put its own threads into the event loop, and has shut them down now.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


@asynccontextmanager
async def _until_done(
    url: str, count: str, submit: Callable[[], Awaitable[None]]
) -> AsyncIterator[Run]:
    watcher = await asyncpg.connect(url)

    async def run(batch: int) -> None:
        goal = await watcher.fetchval(count) + batch
        for _ in range(batch):
            await submit()
        while await watcher.fetchval(count) < goal:  # noqa: ASYNC110 - only the table knows
            await asyncio.sleep(0.002)

    try:
        yield run
    finally:
        await watcher.close()
