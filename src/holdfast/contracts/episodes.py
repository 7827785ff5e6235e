"""The session log: everything that happened, in order, recalled by time and by meaning."""

from __future__ import annotations

from holdfast.contracts.sessions import Sessions
from holdfast.values.checks import check_count, check_id, check_ids
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event, Session
from holdfast.values.identity import Agent

MAX_DELETED = 1000
"""How many events one call may delete by their ids."""


class EpisodicMemory(Sessions):
    """The ordered, append-only log of each session, one for all agents in it.

    A transcript is this log read with type ``message``: the same write serves both. The order in a
    session is (epoch, seq), never a clock; across sessions it is the time of occurrence.

    Promises:
    - an event comes back exactly as it was appended
    - append returns the events with their position in the log
    - seq is gap-free in the log of a session, whoever writes
    - a batch is contiguous in each of its sessions
    - order within a session is epoch and seq, never a clock
    - a batch is atomic: one bad event and none is stored
    - an empty batch does nothing
    - the same id and body again is a no-op that returns the first position
    - the same id and body with another time is the same event, and the first time stays
    - the same id with another body is a conflict and nothing is written
    - two equal events with different ids stay two
    - any type is legal
    - a message event is a message of the transcript
    - an appended message is an event of the log
    - a message event with a payload that is no message is refused
    - concurrent writers to one session leave no gap and lose nothing
    - patches change states in the same step as the events, or are refused
    - a patch of another version is a version conflict, and no event is stored
    - a conflict of an event leaves all states as they were
    - a retry whose events are all stored patches nothing again
    - patches without events are written too
    - a bad patch is an error that names it, and nothing is written
    - recent returns the newest, ascending
    - recent of all sessions is ordered by time of occurrence
    - recent takes only the types asked for
    - an empty list of types is an empty result
    - a limit of zero is an empty result
    - a negative limit is an error that names it
    - one agent never sees anothers events
    - a tenant can neither read, write nor detect anothers events
    - an unknown agent or session is an empty result
    - where keeps only the events whose payload passes the filter
    - where sees the scalars at the top level of a payload, and nothing else
    - where does not see a text of more than 256 bytes
    - where on a nested key is refused, and the error says what can be filtered
    - where has the limits of every filter
    - recent returns as many as asked for whenever so many pass
    - all agents are asked only by name
    - recent and between of all agents hold what every agent did
    - pages of all agents miss nothing
    - all agents are those of the owner who asks, or those that nobody owns
    - all agents of any owner are those of the tenant
    - recall of all agents finds what any of them said
    - recall of all agents weighs a word by what each agent said
    - recall of all agents with an embedder finds by meaning what shares no word
    - recall of more than 100 agents is refused, and the error names the fix
    - between takes the start and leaves the end
    - between pages with a cursor and misses nothing
    - a cursor that no listing gave is refused
    - a naive time is refused
    - recall finds what shares a word with the query
    - recall ranks the rarer word higher
    - recall finds other forms of a word
    - recall finds an event before any indexer could have seen it
    - the speaker's name is part of what is recalled
    - recall is by agent across sessions, or in one session
    - recall filters by type and by time
    - recall returns k results whenever k match
    - recall scores are between zero and one, best first, and name their arm
    - recall of a blank query returns the most recent
    - recall by vector finds the nearest
    - a vector of another dimension is an error that names both
    - a zero, infinite or NaN vector is refused
    - embeddings must be as many as the events
    - recall by vector without any vectors is empty
    - recall with an embedder finds by meaning what shares no word
    - an embedder that is down never loses a write, and recall says so
    - an answer is found by the words of its question
    - only the nearest of the three utterances before lends, and only a question
    - tool messages and other events are looked through for a question
    - an answer borrows from at most 256 events before it
    - an answer borrows only in its own session
    - an answer borrows only from its own agent
    - filters narrow the hits and not what is borrowed
    - what was cleared is not borrowed any more
    - what was popped or replaced is not borrowed any more
    - an embedder that reads context reads nothing that was cleared
    - an event is found by its day
    - a question that names one speaker prefers what that speaker said
    - an event ranks higher in a session where more was found
    - an event beside others that were found ranks higher
    - an event that asks ranks below one that states
    - equal scores are ordered by session, epoch and seq
    - equal scores at the last candidate are ordered by session, epoch and seq
    - a candidate of one arm has its score of the other arm too
    - recall with filters and owners returns k results whenever k match
    - any text and any name is indexed
    - any number of speakers is kept apart
    - recall explains each hit if asked, and not otherwise
    - an explanation has the rank and the time of every arm
    - a search with one arm is explained by it
    - a reranker orders the first 20 hits
    - a reranker that fails is an EngineError that names it
    - a reranker that is none, or for a vector, is refused
    - a reranker sees the events of the owner who asks, under their own ids
    - sessions are created on first use
    - start_session is idempotent and keeps what was started
    - a session has the subject that it was started with
    - a session with the id of a deleted one has its subject
    - starting a session about another subject is a conflict and nothing is changed
    - a subject that is not an id is refused and no session is started
    - a session that ended may be started again
    - end_session keeps the first end
    - ending an unknown session is a NotFoundError
    - sessions are listed newest first, in pages
    - sessions are listed by last activity, in pages
    - sessions of all agents are listed
    - sessions of all agents are those of the owner who asks, or those that nobody owns
    - sessions are filtered by their metadata
    - a listing of sessions in an unknown order is refused
    - sessions are listed with the states that their metadata names, or it is refused
    - a session that names no state is listed without one
    - a listing with states has only states of the owner who asks
    - a listing with states is in pages, and each page has its states
    - agents that have events are listed by code points
    - a limit and after select a page of the agents
    - listed agents are those of the owner who asks, or those that nobody owns
    - get returns events by their ids, in the order of the ids
    - get of unknown ids is an empty result
    - get sees no other session and no other tenant
    - a limit of none returns all events
    - after_seq skips the events up to that position
    - after_seq without a session is refused
    - delete_session removes the session and its log, and nothing of another
    - delete_session is idempotent and says whether there was one
    - a session created again after delete_session has nothing of the old one
    - sequence numbers are never reused after delete_session
    - a fork has the log of its session up to a number and goes on from there
    - a fork without a number has the whole log
    - a fork and its session do not see what the other appends or clears
    - a fork is recalled by words and by the vectors of its writers
    - a fork names its session and the number, also after that session is deleted
    - a fork that is repeated is the same fork
    - a fork into a session that is or was another is a conflict and nothing is written
    - a fork of an unknown session or beyond its end is refused
    - a fork belongs to the owner of its session
    - a fork is about the subject of its session
    - delete_events removes the events with these ids and says how many were there
    - deleted events are never recalled nor in a transcript
    - sequence numbers are never reused after delete_events
    - delete_events of another session or owner removes nothing
    - delete_events of more than 1000 ids is refused
    - clear removes the whole log of the session, and nothing of another
    - clear narrows by agent, run and types
    - clear is idempotent and says how many
    - clear of an empty run id is refused
    - cleared events are never recalled
    - sequence numbers are never reused after a clear
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - what was appended is there after reopening
    """

    async def get(self, session_id: str, ids: list[str]) -> list[Event]:
        """Return events of a session by their ids, in that order; unknown ids are left out.

        ::

            [event] = await episodes.get("s1", ["e1"])
        """
        session = self._scope.id("session_id", session_id)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        if not wanted:
            return []
        found = {one.id: one for one in await self._storage.get(session, wanted)}
        return self._own([found[one] for one in wanted if one in found])

    async def fork(self, session_id: str, into: str, *, at: int | None = None) -> Session:
        """Copy a session's log up to the ``seq`` ``at``, or all of it, into a new session.

        Its events keep their ids and numbers, and the next one continues after ``at``; so a session
        can be continued from any point of it. Its working state is not copied. A retry returns the
        fork. Raises ``ConflictError`` if ``into`` is, or was, another session. ::

            fork = await episodes.fork("s1", "s1-again", at=7)
        """
        source, target = self._scope.id("session_id", session_id), self._scope.id("into", into)
        if source == target:
            raise InvalidInputError("into", "must be another session than session_id")
        last = None if at is None else check_count("at", at)
        return self._scope.own_session(await self._storage.fork(source, last, target))

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its log and its metadata. Returns whether there was one.

        Its working state is not deleted: see ``short_term.clear``. A later session with this id
        continues the sequence numbers. ::

            await episodes.delete_session("s1")
        """
        return await self._storage.delete_session(self._scope.id("session_id", session_id))

    async def delete_events(self, session_id: str, ids: list[str]) -> int:
        """Delete events of a session by their ids. Returns how many were there.

        Forks that were made before keep their copies of the events. ::

            await episodes.delete_events("s1", [hit.event.id])
        """
        session = self._scope.id("session_id", session_id)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        if len(wanted) > MAX_DELETED:
            raise InvalidInputError(
                "ids",
                f"has {len(wanted)} ids, and at most {MAX_DELETED} are allowed: call it in parts",
            )
        return await self._storage.delete_events(session, wanted) if wanted else 0

    async def clear(
        self,
        session_id: str,
        *,
        agent_id: Agent | None = None,
        run_id: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Delete the events of a session that match all given arguments. Returns how many.

        ::

            removed = await episodes.clear("s1")
        """
        return await self._storage.clear(
            self._scope.id("session_id", session_id),
            None if agent_id is None else self._scope.agent(agent_id),
            None if run_id is None else check_id("run_id", run_id),
            None if types is None else check_ids("types", types),
        )
