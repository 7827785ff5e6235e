"""Transcripts, as agents use them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

from holdfast.contracts.front import Front
from holdfast.spi.log_entry import LogEntry, TranscriptPage, distinct
from holdfast.spi.transcripts import Tail, TranscriptKey, Transcripts
from holdfast.values.checks import check_absent_id, check_count, check_id, check_list
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
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
    """An agent's transcript, keyed by (tenant, agent, session); a message may belong to a run.

    It only reads and writes. Trimming to a model's window is compaction, a view that never changes
    what is stored. ``HistoryStore`` has the further methods of Holdfast's engines.
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


@runtime_checkable
class HistoryStore(HistoryProvider, Protocol):
    """A transcript whose newest messages can also be removed and replaced.

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
    - pop removes the newest message and returns it
    - pop of a transcript without messages is none
    - pop leaves other agents, other sessions and events that are no messages
    - a popped message is in no page, count or recall
    - a popped message may be appended again and gets a new number
    - of concurrent poppers no two get the same message
    - replace_tail puts messages in the place of those after a number
    - replace_tail of no messages removes those after a number
    - replace_tail after the newest message only appends
    - replace_tail may keep messages that it removes, at new numbers
    - replace_tail with another expected_last_seq is a version conflict and nothing is written
    - replace_tail with an id that stays elsewhere is a conflict and nothing is written
    - replace_tail with one bad message writes nothing
    - a retry of replace_tail has no further effect
    - replace_tail leaves other agents and events that are no messages
    - of concurrent replacers who expect the same number one wins
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a message of a million characters comes back
    - what was appended is there after reopening
    """

    @abstractmethod
    async def pop(self, agent_id: AgentId, *, session_id: str) -> ChatMessage | None:
        """Remove the agent's newest message in a session and return it, in one step.

        Returns ``None`` if there is none. Recall does not find the message any more, and a late
        write does not restore it. Do not repeat the call after a ``TimedOutError``: the message may
        have been removed. ::

            undone = await history.pop(agent, session_id="s1")
        """

    @abstractmethod
    async def replace_tail(
        self,
        agent_id: AgentId,
        *,
        session_id: str,
        after_seq: int,
        messages: list[ChatMessage],
        expected_last_seq: int,
        run_id: str = "",
    ) -> int:
        """Replace the agent's messages after ``after_seq`` by others, all or none.

        Raises ``VersionConflictError`` if the ``seq`` of the newest message is not
        ``expected_last_seq`` (0 if there must be no message): another writer has changed the
        transcript. All ``messages`` get a new ``seq``, also those that were stored before. Returns
        the ``seq`` of the newest message, or 0. A retry with the same messages has no further
        effect. ::

            seen = await history.get_messages(agent, session_id="s1")
            summary = ChatMessage.system("They talked about tides.")
            await history.replace_tail(
                agent,
                session_id="s1",
                after_seq=0,
                messages=[summary, *seen[-2:]],
                expected_last_seq=seen[-1].seq,
            )
        """


class History(Front, HistoryStore):
    """Implements ``HistoryStore``: checks the arguments, then calls the engine's storage.

    ::

        history = History(PostgresTranscripts(engine, tenant="acme"))
    """

    def __init__(self, transcripts: Transcripts) -> None:
        self._storage = transcripts

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
        entries = self._entries(self._key(agent_id, session_id), messages, run_id)
        if entries:
            await self._storage.append(entries)

    def checked(
        self, agent_id: Agent, messages: list[ChatMessage], *, session_id: str, run_id: str
    ) -> list[LogEntry]:
        """Return messages as ``append_checked`` takes them, with the stored ids of this view.

        ::

            entries = history.checked(agent, turns, session_id="s1", run_id=task.id)
        """
        return self._entries(self._key(agent_id, session_id), messages, run_id)

    async def append_checked(self, entries: Sequence[LogEntry]) -> None:
        """Append messages that ``checked`` returned, of several transcripts, in one request.

        After an error some transcripts may have theirs: a retry appends the others. An owner's view
        refuses entries of others. ::

            await history.append_checked([*entries_of_ana, *entries_of_bob])
        """
        for at, entry in enumerate(entries):
            if not self._scope.owns(entry.session):
                raise InvalidInputError(f"entries[{at}]", "is not in a session of this owner")
            if not self._scope.owns_agent(entry.agent):
                raise InvalidInputError(f"entries[{at}]", "is not of an agent of this owner")
        unique = list(distinct(entries).values())
        if unique:
            await self._storage.append_across(unique)

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
        return messages_from_rows(await self._storage.read(key, page))

    async def clear(self, agent_id: Agent, *, session_id: str) -> None:
        """Delete the agent's messages in a session."""
        await self._storage.clear(self._key(agent_id, session_id), None)

    async def clear_run(self, agent_id: Agent, *, session_id: str, run_id: str) -> None:
        """Delete the agent's messages of one run; the rest of the session stays."""
        key = self._key(agent_id, session_id)
        await self._storage.clear(key, check_id("run_id", run_id))

    async def count_messages(self, agent_id: Agent, *, session_id: str) -> int:
        """Return how many messages the agent has in a session."""
        return await self._storage.count(self._key(agent_id, session_id))

    async def pop(self, agent_id: Agent, *, session_id: str) -> ChatMessage | None:
        """Remove the agent's newest message in a session and return it, in one step."""
        row = await self._storage.pop(self._key(agent_id, session_id))
        return None if row is None else messages_from_rows([row])[0]

    async def replace_tail(
        self,
        agent_id: Agent,
        *,
        session_id: str,
        after_seq: int,
        messages: list[ChatMessage],
        expected_last_seq: int,
        run_id: str | None = None,
    ) -> int:
        """Replace the agent's messages after ``after_seq`` by others, all or none."""
        key = self._key(agent_id, session_id)
        tail = Tail(
            check_count("after_seq", after_seq),
            check_count("expected_last_seq", expected_last_seq),
            self._entries(key, messages, run_id),
        )
        return await self._storage.replace_tail(key, tail)

    def _entries(
        self, key: TranscriptKey, messages: list[ChatMessage], run_id: str | None
    ) -> list[LogEntry]:
        """Check messages, and return their log entries without duplicates."""
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
        return list(distinct(entries).values()) if len(entries) > 1 else entries

    def _key(self, agent_id: Agent, session_id: str) -> TranscriptKey:
        return TranscriptKey(self._scope.agent(agent_id), self._scope.id("session_id", session_id))
