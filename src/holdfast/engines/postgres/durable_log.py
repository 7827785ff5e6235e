"""The durable side of a session log whose newest turns are in Redis, for one tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.engines.postgres import session_log
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.hybrid.durable_log import (
    Cleared,
    DurableLog,
    Found,
    Grant,
    Known,
    Outcome,
    Reserved,
)
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.log_entry import LogEntry
from holdfast.spi.transcripts import Tail
from holdfast.values.errors import InvalidInputError
from holdfast.values.wakes import Gap

_SQL = load("durable_log")


class PostgresDurableLog(DurableLog):
    """The session logs of a tenant in Postgres, for an engine whose newest events are in Redis.

    ::

        durable = PostgresDurableLog(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def load(self, session: str, agent: str | None, known: Known | None) -> Grant | None:
        """Grant Redis the right to number a session's events. Returns the grant, or ``None``."""
        there = (known.epoch, known.seq, known.grant_version) if known else (None, None, None)
        # Safe to repeat: a grant has no numbers until the hot log has it.
        row = await self._engine.fetchrow(
            _SQL["load"], self._tenant, session, agent, *there, safe=True
        )
        if row is None:
            return None
        gaps = await self._engine.fetch(_SQL["gaps"], self._tenant, session, safe=True)
        epoch, seq, limit, grant_version = row
        return Grant(epoch, seq, limit, grant_version, tuple(Gap(*gap) for gap in gaps))

    async def reserve(self, session: str, *, grant_version: int, writer: str) -> Reserved | None:
        """Reserve numbers for a grant. Returns its new limit; ``None`` if it is outdated."""
        # Safe to repeat: a second reservation only leaves spare numbers.
        row = await self._engine.fetchrow(
            _SQL["reserve"], self._tenant, session, grant_version, writer, safe=True
        )
        return None if row is None else Reserved(row[0], tuple(row[1]))

    async def settle(self, session: str, writer: str) -> tuple[Gap, ...]:
        """Record that a process lost no events of a session. Returns the gaps that are left."""
        await self._engine.fetch(_SQL["settle"], self._tenant, session, writer, safe=True)
        gaps = await self._engine.fetch(_SQL["gaps"], self._tenant, session, safe=True)
        return tuple(Gap(*gap) for gap in gaps)

    async def agent_gaps(self, agent: str) -> tuple[Gap, ...]:
        """Return the gaps of the sessions that an agent started."""
        rows = await self._engine.fetch(_SQL["agent_gaps"], self._tenant, agent, safe=True)
        return tuple(Gap(*row) for row in rows)

    async def hot_sessions(self, agent: str, *, limit: int) -> dict[str, int]:
        """Return an agent's sessions that are loaded in Redis, with their grant versions."""
        rows = await self._engine.fetch(_SQL["hot_sessions"], self._tenant, agent, limit, safe=True)
        return dict(map(tuple, rows))

    async def append(self, entries: Sequence[LogEntry]) -> list[PositionedEntry]:
        """Append directly to Postgres, without Redis."""
        rows = await session_log.append(self._engine, self._tenant, entries)
        return session_log.stored(entries, rows)

    async def reached(self, session: str) -> tuple[tuple[int, int] | None, tuple[Gap, ...]]:
        """Return the last stored position of a session, ``None`` if it has none, and its gaps."""
        row = await self._engine.fetchrow(_SQL["reached"], self._tenant, session, safe=True)
        gaps = await self._engine.fetch(_SQL["gaps"], self._tenant, session, safe=True)
        return None if row is None else (row[0], row[1]), tuple(Gap(*gap) for gap in gaps)

    async def find(self, entries: Sequence[PositionedEntry]) -> list[Found]:
        """Look up entries by id and position. Returns one ``Found`` per entry, in order."""
        given = [one.entry for one in entries]
        rows = await self._engine.fetch(
            _SQL["find"],
            self._tenant,
            [one.session for one in given],
            [one.id for one in given],
            [one.epoch for one in entries],
            [one.seq for one in entries],
            [one.agent for one in given],
            [one.type for one in given],
            [one.run for one in given],
            [one.body for one in given],
            safe=True,
        )
        return [_found(one, row) for one, row in zip(entries, rows, strict=True)]

    async def tail(self, session: str, limit: int) -> list[PositionedEntry]:
        """Return the newest entries of a session, ascending."""
        rows = await self._engine.fetch(_SQL["tail"], self._tenant, session, limit, safe=True)
        return [PositionedEntry(LogEntry(*row[:7]), row[7], row[8]) for row in reversed(rows)]

    async def clear(
        self,
        session: str,
        *,
        agent: str | None,
        run: str | None,
        types: list[str] | None,
        until: tuple[int, int] | None,
    ) -> Cleared:
        """Delete matching entries up to a position, with a tombstone for unflushed ones."""
        rows = await self._engine.fetch(
            _SQL["clear"],
            *(self._tenant, session, agent, run, types, *(until or (None, None))),
            safe=False,
        )
        positions = {id_: (epoch, seq) for id_, epoch, seq in rows}
        return Cleared(positions, positions.pop(None, until))

    async def pop(self, session: str, agent: str) -> PositionedEntry | None:
        """Remove the newest message of an agent and return it; ``None`` if there is none."""
        return await session_log.pop(self._engine, self._tenant, session, agent)

    async def replace_tail(
        self, session: str, agent: str, tail: Tail
    ) -> tuple[int, dict[str, tuple[int, int]]]:
        """Replace the newest messages of an agent."""
        return await session_log.replace_tail(self._engine, self._tenant, session, agent, tail)

    async def delete_session(self, session: str) -> dict[str, tuple[int, int]] | None:
        """Delete a session with its log. Returns the positions of its events, or ``None``."""
        rows = await self._engine.fetch(_SQL["delete_session"], self._tenant, session, safe=False)
        return {id_: (epoch, seq) for id_, epoch, seq in rows[:-1]} if rows else None

    async def delete_events(self, session: str, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Delete events by their ids. Returns the positions of the deleted events."""
        where = (self._tenant, session, list(ids))
        rows = await self._engine.fetch(_SQL["delete_events"], *where, safe=False)
        return {id_: (epoch, seq) for id_, epoch, seq in rows}

    async def count_messages(self, session: str, agent: str, *, besides: Sequence[str]) -> int:
        """Return how many messages an agent has in a session, without the ids ``besides``."""
        count: int = await self._engine.fetchval(
            _SQL["count_messages"], self._tenant, session, agent, list(besides), safe=True
        )
        return count

    async def check_dimension(self, dimension: int) -> None:
        """Raise if the vectors of the log have another dimension."""
        have = await self._engine.fetchval(_SQL["dimension"], self._tenant, safe=True)
        if have not in {None, dimension}:
            raise InvalidInputError(
                "embeddings[0]", f"has dimension {dimension}, but the log's is {have}"
            )

    async def keep_vectors(
        self, entries: Sequence[LogEntry], vectors: Sequence[Sequence[float]]
    ) -> None:
        """Store the vectors of stored events."""
        if vectors:
            await self._engine.fetch(
                _SQL["keep_vectors"],
                *(self._tenant, [one.session for one in entries], [one.id for one in entries]),
                *([number for vector in vectors for number in vector], len(vectors[0])),
                safe=True,
            )


def _found(one: PositionedEntry, row: Any) -> Found:
    epoch, seq, first, same, covered, dead, rested, over = row
    if same:
        stored = PositionedEntry.of(one.entry, epoch, seq, first)
        outcome = Outcome.STORED if stored.position == one.position else Outcome.KNOWN
        return Found(outcome, stored, rested=rested)
    if covered:
        return Found(Outcome.COVERED, rested=rested, over=over)
    other = epoch is not None
    return Found(Outcome.DEAD if dead or other else None, other=other, rested=rested)
