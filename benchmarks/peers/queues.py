"""pgqueuer and procrastinate: no-op jobs queued, claimed and completed at the same batch size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from benchmarks.peers.match import NOT_SLOWER, Calls, Line, Peer, Stage
from holdfast.bench import queues

RATE = "µs a task; the ratio is that of the rates, ours by the peer's"


AT_ONCE = 100


class _QueuePeer(Peer):
    """A queue of ``bench.queues`` beside ours, a connection each.

    The first two lines queue more tasks than the others work off.
    """

    batches: tuple[int, ...]
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


def _lines(peer: str, batches: tuple[int, ...], *calls: str) -> tuple[Line, ...]:
    """First the tasks are queued, then those that were queued are worked off."""
    ours = "ours is also a conversation with its first message and a log of its states"
    return (
        Line(
            f"queue a task ({peer})",
            "tasks.submit",
            calls[0],
            NOT_SLOWER,
            f"one job with a body of 48 bytes, durable on return; {ours}",
            block=20,
            blocks=40,
            unit=RATE,
        ),
        Line(
            f"queue {AT_ONCE} tasks at once ({peer})",
            "tasks.submit_many",
            calls[1],
            NOT_SLOWER,
            f"the same in one call, all or none; {ours}",
            block=1,
            blocks=40,
            each=AT_ONCE,
            unit=RATE,
        ),
        *(
            Line(
                f"claim and complete, batch {batch} ({peer})",
                f"tasks.claim(limit={batch}), tasks.complete_many",
                calls[2].format(batch),
                NOT_SLOWER,
                "no-op work, one worker; ours gives each a lease with a fence and one task of a "
                "context at a time",
                block=max(20 // batch, 1),
                blocks=40,
                each=batch,
                unit=RATE,
            )
            for batch in batches
        ),
    )


class PgQueuerJobs(_QueuePeer):
    """pgqueuer's own queries, in batches of 1, 10 and 50."""

    name = "pgqueuer"
    packages = ("pgqueuer", "asyncpg")
    install = "pgqueuer[asyncpg]"
    batches = (1, 10, 50)
    queue = queues.PgQueuer
    lines = _lines(
        "pgqueuer",
        batches,
        *("Queries.enqueue", "Queries.enqueue of lists", "Queries.dequeue({}), log_jobs"),
    )


class ProcrastinateJobs(_QueuePeer):
    """procrastinate's job manager, one by one, since it fetches no more at once."""

    name = "procrastinate"
    packages = ("procrastinate", "psycopg", "psycopg-pool")
    install = "procrastinate psycopg[binary,pool]"
    batches = (1,)
    queue = queues.Procrastinate
    lines = _lines(
        "procrastinate",
        batches,
        *("defer_async", "batch_defer_async", "fetch_job, finish_job"),
    )


@asynccontextmanager
async def _opened(queue: queues.Queue, peer: _QueuePeer, url: str) -> AsyncIterator[Calls]:
    await queue.open(url)

    async def submit(_number: int) -> None:
        await queue.submit()

    async def submit_many(_number: int) -> None:
        await queue.submit_many(AT_ONCE)

    def working(batch: int) -> Callable[[int], Awaitable[None]]:
        async def work(_number: int) -> None:
            done = await queue.work(batch)
            if done != batch:
                raise RuntimeError(f"{queue.name} claimed {done} tasks instead of {batch}")

        return work

    try:
        calls = [submit, submit_many, *map(working, peer.batches)]
        yield {line.operation: call for line, call in zip(peer.lines, calls, strict=True)}
    finally:
        await queue.close()
