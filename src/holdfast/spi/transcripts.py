"""Transcripts, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from holdfast.spi.log_entry import LogEntry, TranscriptPage, another_body
from holdfast.values.errors import VersionConflictError
from holdfast.values.stored_messages import MessageRow

__all__ = [
    "LogEntry",
    "MessageRow",
    "Tail",
    "TranscriptKey",
    "TranscriptPage",
    "Transcripts",
    "VersionConflictError",
    "another_body",
]


class TranscriptKey(NamedTuple):
    """The key of a transcript: an agent, in its canonical form, and a session."""

    agent: str
    session: str


class Tail(NamedTuple):
    """The new end of a transcript; it replaces the messages with a number above ``after_seq``."""

    after_seq: int
    expected_last_seq: int
    """The number that the newest message must have; 0 if there must be none."""

    entries: Sequence[LogEntry]
    """Messages of one agent, session and run, with different ids; may be empty."""

    def check(self, session: str, last_seq: int, stored: Sequence[tuple[str, str, str]]) -> bool:
        """Return whether the tail must be written; ``False`` if it is already stored.

        ``last_seq`` is the number of the newest message, and ``stored`` has id, run and body of the
        messages after ``after_seq``. Raises ``VersionConflictError`` if the transcript has another
        end than expected.

        >>> Tail(after_seq=1, expected_last_seq=2, entries=[]).check("s1", 2, [("m2", "", "{}")])
        True
        """
        if last_seq == self.expected_last_seq:
            return True
        if list(stored) == [(one.id, one.run, one.body) for one in self.entries]:
            return False
        raise VersionConflictError(
            "transcript", session, expected=self.expected_last_seq, actual=last_seq
        )


class Transcripts(Protocol):
    """The messages of one tenant. The caller checks all arguments; ids within a batch differ."""

    @abstractmethod
    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of one agent, session and run next to each other, all or none.

        An entry whose id is stored with the same content (see ``LogEntry.content``) keeps its
        position and its time. With another content it raises ``ConflictError`` (see
        ``another_body``), and nothing is written.
        """

    async def append_across(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of several agents, sessions and runs, in their order; no two share a key.

        Those of one agent, session and run that are next to each other are appended all or none. An
        engine that can append all of them in one step overrides this.
        """
        for _, group in groupby(entries, key=lambda one: (one.session, one.agent, one.run)):
            await self.append(list(group))

    @abstractmethod
    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending, as they are stored: body, id, time and seq."""

    @abstractmethod
    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove the newest message and return it, in one step; ``None`` if there is none."""

    @abstractmethod
    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the last messages, all or none. Returns the number of the newest message, or 0.

        Raises ``VersionConflictError("transcript", session, …)`` if the newest message has another
        number than expected, unless the tail is already stored, which means a retry. Raises
        ``ConflictError`` (see ``another_body``) if one of its ids is in the session elsewhere.
        """

    @abstractmethod
    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of one run, or of all runs. Their numbers are not used again."""

    @abstractmethod
    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
