"""Transcripts, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.spi.log_entry import LogEntry, TranscriptPage, another_body
from holdfast.values.stored_messages import MessageRow

__all__ = [
    "LogEntry",
    "MessageRow",
    "TranscriptKey",
    "TranscriptPage",
    "Transcripts",
    "another_body",
]


class TranscriptKey(NamedTuple):
    """The key of a transcript: an agent, in its canonical form, and a session."""

    agent: str
    session: str


class Transcripts(Protocol):
    """The messages of one tenant. Every argument is checked; ids within a batch differ."""

    @abstractmethod
    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of one agent, session and run next to each other, all or none.

        An entry whose id is stored with the same content (see ``LogEntry.content``) keeps its
        position and its time. With another content it raises ``ConflictError`` (see
        ``another_body``), and nothing is written.
        """

    @abstractmethod
    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending, as they are stored: body, id, time and seq."""

    @abstractmethod
    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of one run, or of all runs. Their numbers are not used again."""

    @abstractmethod
    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
