"""Transcripts on Postgres: the session log, read as messages."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.session_log import append
from holdfast.spi.log_entry import LogEntry, TranscriptPage
from holdfast.spi.transcripts import MessageRow, TranscriptKey, Transcripts

_SQL = load("history")


class PostgresTranscripts(Transcripts):
    """``Transcripts`` on the session log of the Postgres engine.

    ::

        transcripts = PostgresTranscripts(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        await append(self._engine, self._tenant, entries)

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        whose = (self._tenant, key.session, key.agent)
        if page.last is not None:
            return (await self._engine.fetch(_SQL["newest"], *whose, page.last, safe=True))[::-1]
        bounds = (page.limit, page.offset, page.after_seq or 0)
        return await self._engine.fetch(_SQL["page"], *whose, *bounds, safe=True)

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete messages."""
        whose = (self._tenant, key.session, key.agent)
        await self._engine.fetch(_SQL["clear"], *whose, run, safe=False)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
        whose = (self._tenant, key.session, key.agent)
        return int(await self._engine.fetchval(_SQL["count"], *whose, safe=True))
