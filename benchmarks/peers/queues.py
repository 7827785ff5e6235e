"""pgqueuer and procrastinate: no-op jobs queued, claimed and completed at the same batch size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.peers.match import NOT_SLOWER, Calls, Line, Peer, Stage
from holdfast.bench import queues

RATE = "µs a task; the ratio is that of the rates, ours by the peer's"


class _QueuePeer(Peer):
    """A queue of ``bench.queues`` beside ours, a connection each."""

    batch: int
    queue: type[queues.Queue]

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """The ledger."""
        async with _opened(queues.Holdfast(), self, stage.url) as calls:
            yield calls

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        async with _opened(self.queue(), self, stage.url) as calls:
            yield calls


def _lines(peer: str, batch: int, *calls: str) -> tuple[Line, Line]:
    """First the tasks are queued, then those that were queued are worked off."""
    block = max(batch, 20)
    return (
        Line(
            f"queue a task ({peer})",
            "tasks.submit",
            calls[0],
            NOT_SLOWER,
            "one job with a body of 48 bytes, durable on return; ours is also a conversation with "
            "its first message and a log of its states",
            block=block,
            blocks=40,
            unit=RATE,
        ),
        Line(
            f"claim and complete, batch {batch} ({peer})",
            f"tasks.claim(limit={batch}), tasks.complete_many",
            calls[1],
            NOT_SLOWER,
            "no-op work, one worker; ours gives each a lease with a fence and one task of a "
            "context at a time",
            block=block // batch,
            blocks=40,
            each=batch,
            unit=RATE,
        ),
    )


class PgQueuerJobs(_QueuePeer):
    """pgqueuer's own queries, in batches of 50."""

    name = "pgqueuer"
    packages = ("pgqueuer", "asyncpg")
    install = "pgqueuer[asyncpg]"
    batch = 50
    queue = queues.PgQueuer
    lines = _lines("pgqueuer", 50, "Queries.enqueue", "Queries.dequeue(50), log_jobs")


class ProcrastinateJobs(_QueuePeer):
    """procrastinate's job manager, one by one, since it fetches no more at once."""

    name = "procrastinate"
    packages = ("procrastinate", "psycopg", "psycopg-pool")
    install = "procrastinate psycopg[binary,pool]"
    batch = 1
    queue = queues.Procrastinate
    lines = _lines("procrastinate", 1, "defer_async", "fetch_job, finish_job")


@asynccontextmanager
async def _opened(queue: queues.Queue, peer: _QueuePeer, url: str) -> AsyncIterator[Calls]:
    await queue.open(url)

    async def submit(_number: int) -> None:
        await queue.submit()

    async def work(_number: int) -> None:
        done = await queue.work(peer.batch)
        if done != peer.batch:
            raise RuntimeError(f"{queue.name} claimed {done} tasks instead of {peer.batch}")

    try:
        yield {peer.lines[0].operation: submit, peer.lines[1].operation: work}
    finally:
        await queue.close()
