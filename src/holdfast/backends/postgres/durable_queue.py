"""The durable side of consolidation, for all tenants: flushes, and what could not be stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.errors import EngineError
from holdfast.kernel.core.failpoints import hit
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.durable_log import (
    DeadLetter,
    DurableQueue,
    Flushed,
    Outcome,
    ShardFlush,
    Turn,
)
from holdfast.kernel.storage.log_entry import LogEntry

_SQL = load("durable_log")
POISON = ("22", "23", "54")
"""Classes of SQLSTATE that blame the data: trying again says the same."""


class PostgresDurableQueue(DurableQueue):
    """``DurableQueue`` on the session log of the Postgres engine.

    ::

        queue = PostgresDurableQueue(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    @asynccontextmanager
    async def flushing(self, tenant: str, shard: int) -> AsyncIterator[ShardFlush | None]:
        """Hold a shard, commit at the end."""
        async with (
            self._engine.connection(writes=True) as connection,
            connection.transaction(),
        ):
            if await connection.fetchval(_SQL["hold_shard"], tenant, shard):
                yield _Flush(connection, tenant)
                hit("consolidate.before_commit")
            else:
                yield None

    async def cool(self, tenant: str, session: str, *, heat: int) -> bool:
        """Take back the numbering of a session that rests."""
        cooled: bool = await self._engine.fetchval(_SQL["cool"], tenant, session, heat, safe=True)
        return cooled

    async def dead_letters(self, tenant: str, *, limit: int, after: str = "") -> list[DeadLetter]:
        """What could not be stored, oldest first."""
        rows = await self._engine.fetch(_SQL["letters"], tenant, after, limit, safe=True)
        return [DeadLetter(*row) for row in rows]

    async def get_dead_letter(self, tenant: str, id: str) -> DeadLetter | None:
        """One of them."""
        row = await self._engine.fetchrow(_SQL["letter"], tenant, id, safe=True)
        return None if row is None else DeadLetter(*row)

    async def replay(self, tenant: str, letter: DeadLetter, entry: LogEntry) -> tuple[int, int]:
        """Store an entry after all."""
        row = await self._engine.fetchrow(
            _SQL["replay"],
            *(tenant, letter.id, letter.session, letter.epoch, letter.seq),
            *(entry.agent, entry.type, entry.id, entry.run, entry.occurred_at, entry.body),
            safe=False,
        )
        return row[0], row[1]

    async def discard(self, tenant: str, id: str) -> bool:
        """Give one up."""
        found = await self._engine.fetchval(_SQL["discard"], tenant, id, safe=False)
        return found is not None


class _Flush(ShardFlush):
    """The transaction that holds a shard."""

    def __init__(self, connection: Any, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    async def store(self, turns: Sequence[Turn]) -> Flushed:
        """Store a batch, in halves where the whole cannot be."""
        outcomes: list[Outcome] = []
        overtaken: dict[str, int] = {}
        for sound, part in _runs(turns):
            if sound:
                await self._store(part, outcomes, overtaken)
            else:
                for turn in part:
                    await self._bury(turn, turn.problem)
                    outcomes.append(Outcome.DEAD)
        return Flushed(outcomes, overtaken)

    async def _store(
        self, turns: Sequence[Turn], outcomes: list[Outcome], overtaken: dict[str, int]
    ) -> None:
        try:
            async with self._connection.transaction():
                rows = await self._connection.fetch(_SQL["flush"], self._tenant, *_columns(turns))
        except (asyncpg.PostgresError, asyncpg.DataError) as error:
            if not is_poison(error):
                raise
            if len(turns) == 1:
                await self._bury(turns[0], f"{error} ({_state(error)})")
                outcomes.append(Outcome.DEAD)
                return
            half = len(turns) // 2
            await self._store(turns[:half], outcomes, overtaken)
            await self._store(turns[half:], outcomes, overtaken)
            return
        if len(rows) != len(turns):
            raise EngineError("postgres", f"flushed {len(rows)} of {len(turns)} turns")
        for turn, (_, outcome, ahead) in zip(turns, rows, strict=True):
            if ahead:
                overtaken[turn.session] = ahead
            if outcome == "conflict":
                await self._bury(turn, f"the id {turn.event_id!r} is another event's")
                outcomes.append(Outcome.DEAD)
            else:
                outcomes.append(Outcome(outcome))

    async def _bury(self, turn: Turn, reason: str) -> None:
        await self._connection.fetch(
            _SQL["bury"],
            *(self._tenant, new_id(), turn.session, turn.event_id, turn.epoch, turn.seq),
            *(turn.payload, reason),
        )


def is_poison(error: BaseException) -> bool:
    """Whether an error blames the data: by its SQLSTATE, or because the driver could not encode it.

    >>> is_poison(asyncpg.DataError("no such time"))
    True
    """
    return _state(error)[:2] in POISON


def _state(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "22000")


def _runs(turns: Sequence[Turn]) -> list[tuple[bool, list[Turn]]]:
    """Neighbours that are all sound, or all not, in their order."""
    found: list[tuple[bool, list[Turn]]] = []
    for turn in turns:
        sound = turn.entry is not None and not turn.problem
        if not found or found[-1][0] is not sound:
            found.append((sound, []))
        found[-1][1].append(turn)
    return found


def _columns(turns: Sequence[Turn]) -> tuple[list[Any], ...]:
    entries = [turn.entry for turn in turns if turn.entry is not None]
    return (
        [turn.session for turn in turns],
        [turn.epoch for turn in turns],
        [turn.seq for turn in turns],
        [entry.agent for entry in entries],
        [entry.type for entry in entries],
        [entry.id for entry in entries],
        [entry.run for entry in entries],
        [entry.occurred_at for entry in entries],
        [entry.body for entry in entries],
    )
