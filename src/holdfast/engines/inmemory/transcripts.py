"""Transcripts in the process: the session log, read as messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.session_log import Row, SessionLog
from holdfast.spi.log_entry import LogEntry, TranscriptPage
from holdfast.spi.transcripts import MessageRow, TranscriptKey, Transcripts

_MESSAGES = ("message",)


class InMemoryTranscripts(Transcripts):
    """``Transcripts`` on the session log of the in-memory engine.

    >>> transcripts = InMemoryTranscripts(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._log = engine.table(tenant, SessionLog)

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        self._log.append(entries, None, self._engine.now())

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        rows: Iterable[Row] = self._log.transcript(key.session, key.agent).values()
        if page.last is not None:
            rows = list(rows)
            rows = rows[max(len(rows) - page.last, 0) :]
        else:
            rows = (row for row in rows if row.seq > (page.after_seq or 0))
            end = None if page.limit is None else page.offset + page.limit
            rows = islice(rows, page.offset, end)
        return [row.to_row(row.seq) for row in rows]

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete messages."""
        self._log.clear(key.session, agent=key.agent, run=run, types=_MESSAGES)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
        return len(self._log.transcript(key.session, key.agent))
