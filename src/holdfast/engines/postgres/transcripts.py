"""Transcripts on Postgres: the session log, read as messages."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.postgres import session_log
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.log_entry import LogEntry, TranscriptPage
from holdfast.spi.transcripts import MessageRow, Tail, TranscriptKey, Transcripts

_SQL = load("history")


class PostgresTranscripts(Transcripts):
    """The transcripts of one tenant: the messages in the session logs in Postgres.

    ::

        transcripts = PostgresTranscripts(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        await session_log.append_messages(self._engine, self._tenant, entries)

    async def append_across(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of several sessions, all or none."""
        await session_log.append(self._engine, self._tenant, entries)

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        whose = (self._tenant, key.session, key.agent)
        if page.last is not None:
            return (await self._engine.fetch(_SQL["newest"], *whose, page.last, safe=True))[::-1]
        bounds = (page.limit, page.offset, page.after_seq or 0)
        return await self._engine.fetch(_SQL["page"], *whose, *bounds, safe=True)

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove and return the newest message."""
        popped = await session_log.pop(self._engine, self._tenant, key.session, key.agent)
        return None if popped is None else popped.entry.to_row(popped.seq)

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the newest messages, all or none. Returns the newest number."""
        whose = (self._tenant, key.session, key.agent)
        last, _ = await session_log.replace_tail(self._engine, *whose, tail)
        return last

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of a transcript, or only those of a run."""
        whose = (self._tenant, key.session, key.agent)
        await self._engine.fetch(_SQL["clear"], *whose, run, safe=False)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages in a transcript."""
        whose = (self._tenant, key.session, key.agent)
        return int(await self._engine.fetchval(_SQL["count"], *whose, safe=True))
