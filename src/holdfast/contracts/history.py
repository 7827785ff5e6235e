"""Transcripts, as agents use them."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import Protocol, runtime_checkable

from holdfast.contracts.front import Front
from holdfast.spi.log_entry import LogEntry, TranscriptPage, distinct
from holdfast.spi.transcripts import TranscriptKey, Transcripts
from holdfast.values.checks import check_absent_id, check_id, check_list
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.identity import Agent, AgentId
from holdfast.values.stored_messages import messages_from_rows


class HistoryRetention(StrEnum):
    """How long the messages of a run are kept.

    >>> HistoryRetention("run") is HistoryRetention.RUN
    True
    """

    PERMANENT = "permanent"
    """Kept until they are cleared."""
    RUN = "run"
    """Cleared when the run has ended, also after a crash."""
    NONE = "none"
    """Never written."""


@runtime_checkable
class HistoryProvider(Protocol):
    """An agent's transcript, keyed by (tenant, agent, session); every message may carry a run.

    It only reads and writes. Trimming to a model's window is compaction, a view that never changes
    what is stored.

    Promises:
    - a message comes back exactly as it was appended
    - every kind of content block survives the round trip
    - a block of a future version survives the round trip
    - messages come back in the order in which they were appended
    - one session never sees anothers messages
    - one agent never sees anothers messages in the same session
    - a tenant can neither read, write nor detect anothers messages
    - an agent given as text is the same as its AgentId
    - an unknown session has no messages
    - append_many is contiguous and in order
    - append_many is atomic: one bad message and none is stored
    - append_many of an empty list does nothing
    - the same id and body again is a no-op
    - the same id and body with another time is the same message, and the first time stays
    - the same id twice in one batch is stored once
    - the same id with another body is a conflict and nothing is written
    - the same id with another run is a conflict
    - the same id of another agent in the session is a conflict
    - two equal messages with different ids stay two
    - the same id in another session is another message
    - concurrent appenders get one total order with nothing lost
    - concurrent retries of one message store it once
    - a limit takes from the oldest
    - an offset counts from the oldest
    - an offset beyond the end is an empty result
    - a limit of zero is an empty result
    - a negative limit or offset is an error that names it
    - recent_limit takes the newest and keeps them ascending
    - recent_limit excludes limit, offset and after_seq
    - after_seq is a cursor
    - messages carry their sequence number and it never decreases
    - sequence numbers are never reused after a clear
    - count_messages counts what get_messages returns
    - clear removes the messages of that agent and session only
    - clear is idempotent
    - clear leaves events that are no messages
    - clear_run removes that run only
    - clear_run of an empty run id is refused
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a message of a million characters comes back
    - what was appended is there after reopening
    """

    @abstractmethod
    async def append(
        self, agent_id: AgentId, message: ChatMessage, *, session_id: str, run_id: str = ""
    ) -> None:
        """Append one message. A retry with the same id and body has no effect.

        ``created_at`` is not compared: a message that the caller built again for a retry is the
        same one, and the stored one keeps its time. ::

            await history.append(agent, ChatMessage.user("hello"), session_id="s1")
        """

    @abstractmethod
    async def append_many(
        self,
        agent_id: AgentId,
        messages: list[ChatMessage],
        *,
        session_id: str,
        run_id: str = "",
    ) -> None:
        """Append messages next to each other, all or none.

        ::

            await history.append_many(agent, turns, session_id="s1", run_id="r1")
        """

    @abstractmethod
    async def get_messages(
        self,
        agent_id: AgentId,
        *,
        session_id: str,
        limit: int | None = None,
        offset: int | None = None,
        recent_limit: int | None = None,
        after_seq: int | None = None,
    ) -> list[ChatMessage]:
        """Return the transcript, ascending; ``recent_limit`` selects the newest messages.

        ``after_seq`` skips the messages up to that position in the session's log. ::

            newest = await history.get_messages(agent, session_id="s1", recent_limit=20)
        """

    @abstractmethod
    async def clear(self, agent_id: AgentId, *, session_id: str) -> None:
        """Delete the agent's messages in a session.

        ::

            await history.clear(agent, session_id="s1")
        """

    @abstractmethod
    async def clear_run(self, agent_id: AgentId, *, session_id: str, run_id: str) -> None:
        """Delete the agent's messages of one run; the rest of the session stays.

        ::

            await history.clear_run(agent, session_id="s1", run_id="r1")
        """

    @abstractmethod
    async def count_messages(self, agent_id: AgentId, *, session_id: str) -> int:
        """Return how many messages the agent has in a session.

        ::

            turns = await history.count_messages(agent, session_id="s1")
        """


class History(Front, HistoryProvider):
    """``HistoryProvider`` on any engine.

    ::

        history = History(PostgresTranscripts(engine, tenant="acme"))
    """

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts

    async def append(
        self, agent_id: Agent, message: ChatMessage, *, session_id: str, run_id: str | None = None
    ) -> None:
        """Append one message. A retry with the same id and body has no effect."""
        await self.append_many(agent_id, [message], session_id=session_id, run_id=run_id)

    async def append_many(
        self,
        agent_id: Agent,
        messages: list[ChatMessage],
        *,
        session_id: str,
        run_id: str | None = None,
    ) -> None:
        """Append messages next to each other, all or none."""
        key = self._key(agent_id, session_id)
        run = check_absent_id("run_id", run_id)
        check_list("messages", messages)
        entries = [
            LogEntry.of_message(
                f"messages[{at}]", one, agent=key.agent, session=key.session, run=run
            )
            for at, one in enumerate(messages)
        ]
        for at, entry in enumerate(entries):
            self._limits.check_value(f"messages[{at}]", entry.body)
        if len(entries) > 1:
            entries = list(distinct(entries).values())
        if entries:
            await self._transcripts.append(entries)

    @renamed(last="recent_limit")
    async def get_messages(
        self,
        agent_id: Agent,
        *,
        session_id: str,
        limit: int | None = None,
        offset: int | None = None,
        recent_limit: int | None = None,
        after_seq: int | None = None,
    ) -> list[ChatMessage]:
        """Return the transcript or a part of it, ascending."""
        key = self._key(agent_id, session_id)
        page = TranscriptPage.of(
            limit=limit, offset=offset, recent_limit=recent_limit, after_seq=after_seq
        )
        return messages_from_rows(await self._transcripts.read(key, page))

    async def clear(self, agent_id: Agent, *, session_id: str) -> None:
        """Delete the agent's messages in a session."""
        await self._transcripts.clear(self._key(agent_id, session_id), None)

    async def clear_run(self, agent_id: Agent, *, session_id: str, run_id: str) -> None:
        """Delete the agent's messages of one run; the rest of the session stays."""
        key = self._key(agent_id, session_id)
        await self._transcripts.clear(key, check_id("run_id", run_id))

    async def count_messages(self, agent_id: Agent, *, session_id: str) -> int:
        """Return how many messages the agent has in a session."""
        return await self._transcripts.count(self._key(agent_id, session_id))

    def _key(self, agent_id: Agent, session_id: str) -> TranscriptKey:
        return TranscriptKey(self._scope.agent(agent_id), self._scope.id("session_id", session_id))
