"""Transcripts at the speed of the hot log; the durable log is authoritative."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engines.hybrid.log import HybridLog, once
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.hybrid.hot_log import Window
from holdfast.spi.log_entry import LogEntry, TranscriptPage
from holdfast.spi.transcripts import MessageRow, Tail, TranscriptKey, Transcripts


class HybridTranscripts(Transcripts):
    """Transcripts over Redis and Postgres; ``durable`` is the storage of the Postgres engine.

    ::

        transcripts = HybridTranscripts(log, PostgresTranscripts(engine))
    """

    def __init__(self, log: HybridLog, durable: Transcripts) -> None:
        self._log = log
        self._durable = durable

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        await self._log.append(entries)

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        if page.last is not None:
            enough, newest = await self._log.newest(key.session, page.last, _chosen(key.agent))
            if enough:
                return [one.entry.to_row(one.seq) for one in newest]
            found = await self._merged(key, newest, page)
            return found[max(len(found) - page.last, 0) :]
        window = await self._log.window(key.session)
        mine = _mine(window, key.agent)
        if window.floor == (0, 0):
            found = [one.entry.to_row(one.seq) for one in mine if one.seq > (page.after_seq or 0)]
        else:
            late = [one for one in mine if one.entry.id in window.unflushed]
            if not late:
                return await self._durable.read(key, page)
            most = None if page.limit is None else page.limit + page.offset
            found = await self._merged(key, late, page._replace(limit=most, offset=0))
        until = len(found) if page.limit is None else page.offset + page.limit
        return found[page.offset : until]

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove and return the newest message."""
        popped = await self._log.edits.pop(key.session, key.agent)
        return None if popped is None else popped.entry.to_row(popped.seq)

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the newest messages, all or none. Returns the newest number."""
        return await self._log.edits.replace_tail(key.session, key.agent, tail)

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of a transcript, or only those of a run."""
        await self._log.clear(key.session, agent=key.agent, run=run, types=["message"])

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages in a transcript."""
        window = await self._log.window(key.session)
        mine = _mine(window, key.agent)
        if window.floor == (0, 0):
            return len(mine)
        late = [one.entry.id for one in mine if one.entry.id in window.unflushed]
        stored = await self._log.durable.count_messages(key.session, key.agent, besides=late)
        return stored + len(late)

    async def _merged(
        self, key: TranscriptKey, late: list[PositionedEntry], page: TranscriptPage
    ) -> Sequence[MessageRow]:
        """Return the durable transcript with the unflushed messages, in log order."""
        stored = await self._durable.read(key, page)
        known = {row[1] for row in stored}
        positions = {one.entry.id: one.position for one in late}
        fresh = [
            one.entry.to_row(one.seq)
            for one in late
            if one.entry.id not in known and one.seq > (page.after_seq or 0)
        ]
        if not fresh:
            return stored
        # Numbers keep growing across epochs, so the number alone orders both kinds.
        return sorted([*stored, *fresh], key=lambda one: (one[3], positions.get(one[1], (0, 0))))


def _chosen(agent: str) -> Callable[[PositionedEntry], bool]:
    return lambda one: one.entry.agent == agent and one.entry.type == "message"


def _mine(window: Window, agent: str) -> list[PositionedEntry]:
    """Return the agent's messages in a window, each once."""
    return once(filter(_chosen(agent), window.entries))
