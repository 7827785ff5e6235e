"""Flushes from Redis to Postgres, and dead letters, for all tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.payloads import stored_filterable
from holdfast.engines.postgres.queries import load
from holdfast.spi.hybrid.durable_log import (
    DeadLetter,
    DurableQueue,
    Flushed,
    Outcome,
    ShardFlush,
    Turn,
)
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import EngineError
from holdfast.values.failpoints import hit
from holdfast.values.ids import new_id

_SQL = load("durable_log")
POISON = ("22", "23", "54")
"""SQLSTATE classes of errors that the data causes: a retry fails again."""


class PostgresDurableQueue(DurableQueue):
    """Stores what a consolidator flushes from Redis, and the dead letters of all tenants.

    ::

        queue = PostgresDurableQueue(engine)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    @asynccontextmanager
    async def flushing(self, tenant: str, shard: int) -> AsyncIterator[ShardFlush | None]:
        """Lock a shard and commit at the end. Yields ``None`` if another process has the lock."""
        async with (
            self._engine.connection(writes=True, tenant=tenant) as connection,
            connection.transaction(),
        ):
            if await connection.fetchval(_SQL["hold_shard"], tenant, shard):
                yield _Flush(connection, tenant)
                hit("consolidate.before_commit")
            else:
                yield None

    async def unload(self, tenant: str, session: str, *, grant_version: int) -> bool:
        """Revoke the grant of an idle session. Returns ``False`` if there is a newer grant."""
        unloaded: bool = await self._engine.fetchval(
            _SQL["unload"], tenant, session, grant_version, safe=True
        )
        return unloaded

    async def behind(self, *, limit: int) -> list[tuple[str, str, int]]:
        """Return sessions in which Redis is behind Postgres: tenant, session and epoch."""
        rows = await self._engine.fetch_across(_SQL["behind"], limit, safe=True)
        return [(tenant, session, epoch) for tenant, session, epoch in rows]

    async def unsettled(self, writer: str) -> list[tuple[str, str]]:
        """Return the sessions in which Redis may have lost events of a process."""
        rows = await self._engine.fetch_across(_SQL["unsettled"], writer, safe=True)
        return [(tenant, session) for tenant, session in rows]

    async def release(self, writer: str) -> None:
        """Unregister a process that ends: all events that it acknowledged are stored."""
        await self._engine.fetch_across(_SQL["release"], writer, safe=True)

    async def dead_letters(self, tenant: str, *, limit: int, after: str = "") -> list[DeadLetter]:
        """Return dead letters, oldest first."""
        rows = await self._engine.fetch(_SQL["letters"], tenant, after, limit, safe=True)
        return [DeadLetter(*row) for row in rows]

    async def get_dead_letter(self, tenant: str, id: str) -> DeadLetter | None:
        """Return one dead letter."""
        row = await self._engine.fetchrow(_SQL["letter"], tenant, id, safe=True)
        return None if row is None else DeadLetter(*row)

    async def replay(self, tenant: str, letter: DeadLetter, entry: LogEntry) -> tuple[int, int]:
        """Store a dead letter's entry, at its position if that is free. Returns its position."""
        row = await self._engine.fetchrow(
            _SQL["replay"],
            *(tenant, letter.id, letter.session, letter.epoch, letter.seq),
            *(entry.agent, entry.type, entry.id, entry.run, entry.occurred_at, entry.body),
            safe=False,
        )
        return row[0], row[1]

    async def discard(self, tenant: str, id: str) -> bool:
        """Delete a dead letter. Return whether it existed."""
        found = await self._engine.fetchval(_SQL["discard"], tenant, id, safe=False)
        return found is not None


class _Flush(ShardFlush):
    """The transaction that holds the lock of a shard during a flush."""

    def __init__(self, connection: Any, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._moved: set[str] = set()

    async def store(self, turns: Sequence[Turn]) -> Flushed:
        """Store a batch. If its data causes an error, split it into halves to find the bad turn."""
        outcomes: list[Outcome] = []
        behind: dict[str, int] = {}
        for sound, part in _runs(turns, lambda turn: turn.entry is not None and not turn.problem):
            if sound:
                await self._store(part, outcomes, behind)
            else:
                for turn in part:
                    await self._bury(turn, turn.problem)
                    outcomes.append(Outcome.DEAD)
        return Flushed(outcomes, behind)

    async def _store(
        self, turns: Sequence[Turn], outcomes: list[Outcome], behind: dict[str, int]
    ) -> None:
        for moved, part in _runs(turns, lambda turn: turn.session in self._moved):
            if moved:
                for turn in part:
                    await self._move(turn, outcomes, behind)
            else:
                await self._store_in_place(part, outcomes, behind)

    async def _store_in_place(
        self, turns: Sequence[Turn], outcomes: list[Outcome], behind: dict[str, int]
    ) -> None:
        try:
            async with self._connection.transaction():
                rows = await self._connection.fetch(_SQL["flush"], self._tenant, *_columns(turns))
        except (asyncpg.PostgresError, asyncpg.DataError) as error:
            if not is_poison(error):
                raise
            if len(turns) > 1:
                half = len(turns) // 2
                await self._store(turns[:half], outcomes, behind)
                await self._store(turns[half:], outcomes, behind)
            elif _is_taken(error):
                await self._move(turns[0], outcomes, behind)
            else:
                await self._bury(turns[0], f"{error} ({_state(error)})")
                outcomes.append(Outcome.DEAD)
            return
        if len(rows) != len(turns):
            raise EngineError("postgres", f"flushed {len(rows)} of {len(turns)} turns")
        for turn, (_, outcome, ahead) in zip(turns, rows, strict=True):
            if ahead:
                behind[turn.session] = max(ahead, behind.get(turn.session, 0))
            if outcome == "behind":
                await self._move(turn, outcomes, behind)
            elif outcome == "conflict":
                await self._bury(turn, f"the id {turn.event_id!r} is another event's")
                outcomes.append(Outcome.DEAD)
            else:
                outcomes.append(Outcome(outcome))

    async def _move(self, turn: Turn, outcomes: list[Outcome], behind: dict[str, int]) -> None:
        """Store a turn, and the turns after it, at the end of its session, in a new epoch.

        Its position is taken: Redis lost its last writes, for example in a power cut, and assigned
        their numbers again. Or its epoch is over: two servers took writes at once.
        """
        try:
            async with self._connection.transaction():
                epoch = await self._connection.fetchval(
                    _SQL["move"], self._tenant, turn.session, *_body(turn)
                )
        except (asyncpg.PostgresError, asyncpg.DataError) as error:
            if not is_poison(error) and _state(error) != "HF001":
                raise
            await self._bury(turn, f"{error} ({_state(error)})")
            outcomes.append(Outcome.DEAD)
            return
        self._moved.add(turn.session)
        behind[turn.session] = epoch
        outcomes.append(Outcome.KNOWN)

    async def _bury(self, turn: Turn, reason: str) -> None:
        await self._connection.fetch(
            _SQL["bury"],
            *(self._tenant, new_id(), turn.session, turn.event_id, turn.epoch, turn.seq),
            *(turn.payload, reason),
        )


def is_poison(error: BaseException) -> bool:
    """Whether the data caused an error: by its SQLSTATE, or because the driver cannot encode it.

    >>> is_poison(asyncpg.DataError("no such time"))
    True
    """
    return _state(error)[:2] in POISON


def _state(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "22000")


def _is_taken(error: BaseException) -> bool:
    """Whether an insert failed because another event has the position of the turn."""
    return _state(error) == "23505" and getattr(error, "constraint_name", "") == "events_pkey"


def _runs(turns: Sequence[Turn], key: Callable[[Turn], bool]) -> Iterator[tuple[bool, list[Turn]]]:
    """Yield groups of consecutive turns with the same ``key``, which may change meanwhile."""
    part: list[Turn] = []
    for turn in turns:
        if part and key(turn) is not key(part[0]):
            yield key(part[0]), part
            part = []
        part.append(turn)
    if part:
        yield key(part[0]), part


def _body(turn: Turn) -> tuple[Any, ...]:
    entry = turn.entry
    if entry is None:  # such a turn is a dead letter
        raise EngineError("postgres", f"the turn of {turn.event_id!r} cannot be read")
    said = (entry.agent, entry.type, entry.id, entry.run, entry.occurred_at, entry.body)
    return (*said, stored_filterable(entry.type, entry.body))


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
        [stored_filterable(entry.type, entry.body) for entry in entries],
        [turn.awaited for turn in turns],
    )
