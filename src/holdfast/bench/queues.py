"""Queues of no-op work on one Postgres: ours, a bare SKIP LOCKED loop, and installed peers."""

from __future__ import annotations

import uuid
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Protocol

import asyncpg

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.values.content import ChatMessage
from holdfast.values.tasks.new_task import NewTask

BODY = "the tide is low and the harbour is full of ships"


class Queue(Protocol):
    """The operations of each contestant on no-op tasks."""

    name: str

    async def open(self, url: str) -> None:
        """Connect, and create what the queue needs."""
        ...

    async def submit(self) -> None:
        """Queue one task."""
        ...

    async def submit_many(self, count: int) -> None:
        """Queue this many tasks in one call, all or none."""
        ...

    async def work(self, batch: int) -> int:
        """Claim up to ``batch`` tasks and complete them. Returns how many there were."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class Holdfast(Queue):
    """Holdfast's ledger: leases, fences, a log of transitions, one task of a context at a time."""

    name = "holdfast"

    async def open(self, url: str) -> None:
        """Open one connection, as all contestants do."""
        self._engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        self._ledger = Ledger(PostgresLedger(self._engine, tenant="bench"))

    async def submit(self) -> None:
        """Queue a task with its first message, in a new context."""
        await self._ledger.submit("bench", ChatMessage.user(BODY))

    async def submit_many(self, count: int) -> None:
        """Queue tasks by one statement."""
        await self._ledger.submit_many(
            [NewTask("bench", ChatMessage.user(BODY)) for _ in range(count)]
        )

    async def work(self, batch: int) -> int:
        """Claim tasks and complete them, by one statement each."""
        claimed = await self._ledger.claim("w1", limit=batch)
        if claimed:
            await self._ledger.complete_many([one.lease for one in claimed])
        return len(claimed)

    async def close(self) -> None:
        """Close the pool."""
        await self._engine.aclose()


class Bare(Queue):
    """The bare loop: two statements, without leases or history."""

    name = "bare SKIP LOCKED"

    async def open(self, url: str) -> None:
        """Create its table."""
        self._held = await asyncpg.connect(url)
        await self._held.execute(
            "CREATE SCHEMA IF NOT EXISTS bare; CREATE TABLE bare.q (id bigserial PRIMARY KEY, "
            "state text NOT NULL DEFAULT 'queued', body text NOT NULL); "
            "CREATE INDEX ON bare.q (id) WHERE state = 'queued'"
        )

    async def submit(self) -> None:
        """Insert one row."""
        await self._held.execute("INSERT INTO bare.q (body) VALUES ($1)", BODY)

    async def submit_many(self, count: int) -> None:
        """Insert rows by one statement."""
        sql = "INSERT INTO bare.q (body) SELECT unnest($1::text[])"
        await self._held.execute(sql, [BODY] * count)

    async def work(self, batch: int) -> int:
        """Claim rows, then mark them as done."""
        rows = await self._held.fetch(
            "UPDATE bare.q SET state = 'taken' WHERE id IN (SELECT id FROM bare.q "
            "WHERE state = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT $1) RETURNING id",
            batch,
        )
        if rows:
            await self._held.execute(
                "UPDATE bare.q SET state = 'done' WHERE id = ANY ($1)", [row[0] for row in rows]
            )
        return len(rows)

    async def close(self) -> None:
        """Disconnect."""
        await self._held.close()


class PgQueuer(Queue):
    """pgqueuer's own queries, as its queue manager calls them."""

    name = "pgqueuer"

    async def open(self, url: str) -> None:
        """Create its schema by its own installer."""
        from pgqueuer.db import AsyncpgDriver  # noqa: PLC0415 - optional
        from pgqueuer.queries import EntrypointExecutionParameter, Queries  # noqa: PLC0415

        self._held = await asyncpg.connect(url)
        self._queries: Any = Queries(AsyncpgDriver(self._held))
        await self._queries.install()
        self._entrypoints = {"bench": EntrypointExecutionParameter(concurrency_limit=0)}
        self._manager = uuid.uuid4()

    async def submit(self) -> None:
        """Queue one job."""
        await self._queries.enqueue("bench", BODY.encode())

    async def submit_many(self, count: int) -> None:
        """Queue jobs by its own call for lists."""
        await self._queries.enqueue(["bench"] * count, [BODY.encode()] * count, [0] * count)

    async def work(self, batch: int) -> int:
        """Dequeue jobs, then move them to its log."""
        jobs = await self._queries.dequeue(
            batch_size=batch,
            entrypoints=self._entrypoints,
            queue_manager_id=self._manager,
            global_concurrency_limit=None,
            heartbeat_timeout=timedelta(seconds=30),
        )
        if jobs:
            await self._queries.log_jobs([(job, "successful", None) for job in jobs])
        return len(jobs)

    async def close(self) -> None:
        """Disconnect."""
        await self._held.close()


class Procrastinate(Queue):
    """procrastinate's job manager; it fetches one job at a time."""

    name = "procrastinate"

    async def open(self, url: str) -> None:
        """Create its schema by its own installer."""
        import procrastinate  # noqa: PLC0415 - optional

        self._app: Any = procrastinate.App(
            connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=1)
        )
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()
        self._task = self._app.task(name="bench", queue="bench")(lambda body: body)
        self._worker = await self._app.job_manager.register_worker()

    async def submit(self) -> None:
        """Queue one job."""
        await self._task.defer_async(body=BODY)

    async def submit_many(self, count: int) -> None:
        """Queue jobs by its own call for batches."""
        await self._task.batch_defer_async(*({"body": BODY} for _ in range(count)))

    async def work(self, batch: int) -> int:
        """Fetch and finish jobs one by one."""
        from procrastinate.jobs import Status  # noqa: PLC0415 - optional

        manager, count = self._app.job_manager, 0
        while count < batch and (job := await manager.fetch_job(["bench"], self._worker)):
            await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            count += 1
        return count

    async def close(self) -> None:
        """Disconnect."""
        await self._app.close_async()


def contestants() -> tuple[list[Queue], list[str]]:
    """Return the queues that are installed, and the names of those that are not."""
    peers: list[tuple[str, type[Queue]]] = [
        ("pgqueuer", PgQueuer),
        ("procrastinate", Procrastinate),
    ]
    found: list[Queue] = [Holdfast(), Bare()]
    missing = [name for name, _ in peers if find_spec(name) is None]
    return [*found, *(make() for name, make in peers if name not in missing)], missing
