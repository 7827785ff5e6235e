"""Transcripts in memory: the session log, read as messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.event_index import Row
from holdfast.engines.inmemory.session_log import SessionLog
from holdfast.spi.log_entry import LogEntry, TranscriptPage, another_body
from holdfast.spi.transcripts import MessageRow, Tail, TranscriptKey, Transcripts

_MESSAGES = ("message",)


class InMemoryTranscripts(Transcripts):
    """The transcripts of one tenant: the messages in the session logs in memory.

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

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove and return the newest message."""
        rows = self._log.transcript(key.session, key.agent)
        if not rows:
            return None
        newest = list(rows.values())[-1]
        self._log.remove(self._log.sessions[key.session], [newest])
        return newest.to_row(newest.seq)

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the newest messages, all or none. Returns the newest number."""
        rows = list(self._log.transcript(key.session, key.agent).values())
        gone = [row for row in rows if row.seq > tail.after_seq]
        last = rows[-1].seq if rows else 0
        if not tail.check(key.session, last, [(row.id, row.run, row.body) for row in gone]):
            return last
        session = self._log.sessions.get(key.session)
        if session is not None:
            kept = session.rows.keys() - {row.id for row in gone}
            for one in tail.entries:
                if one.id in kept:
                    raise another_body(one.session, one.id)
            self._log.remove(session, gone)
        new = self._log.append(tail.entries, None, self._engine.now())
        return next((row.seq for row in reversed([*rows[: len(rows) - len(gone)], *new])), 0)

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of a transcript, or only those of a run."""
        self._log.clear(key.session, agent=key.agent, run=run, types=_MESSAGES)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages in a transcript."""
        return len(self._log.transcript(key.session, key.agent))
