"""The logs of all sessions of a tenant, which transcripts and episodes share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from holdfast.engines.inmemory.event_index import EventIndex, Row
from holdfast.spi.episodes import EventScope
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import InvalidInputError, NotFoundError


@dataclass(slots=True)
class SessionRecord:
    """A session: its log in order, and its counter of positions, which ``clear`` does not reset."""

    id: str
    agent: str
    started_at: datetime
    ended_at: datetime | None = None
    metadata: str = "{}"
    epoch: int = 1
    seq: int = 0
    parent: str | None = None
    parent_at: int | None = None
    subject: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    transcripts: dict[str, dict[str, Row]] = field(default_factory=dict)


@dataclass(slots=True)
class SessionLog:
    """The stored events of one tenant, by session and by agent.

    New events are indexed when ``index`` is called, not when they are appended. So a search always
    finds the newest events.
    """

    sessions: dict[str, SessionRecord] = field(default_factory=dict)
    agents: dict[str, dict[str, Row]] = field(default_factory=dict)
    dimension: int | None = None
    _indexes: dict[str, EventIndex] = field(default_factory=dict)
    _deleted: dict[str, int] = field(default_factory=dict)
    _subjects: dict[str, str] = field(default_factory=dict)

    def append(
        self, entries: Sequence[LogEntry], vectors: Sequence[list[float]] | None, now: datetime
    ) -> list[Row]:
        """Store the new entries, all or none. Return the stored row of each entry."""
        fresh = []
        for at, entry in enumerate(entries):
            stored = self._find(entry.session, entry.id)
            if stored is None:
                fresh.append((_row(entry), None if vectors is None else vectors[at]))
            else:
                stored.check_same(entry)
        self._check_dimension([vector for _, vector in fresh])
        for row, vector in fresh:
            self._place(row, vector, now)
        return [self.sessions[entry.session].rows[entry.id] for entry in entries]

    def session(self, session_id: str, agent: str, now: datetime) -> SessionRecord:
        """Return the session, created on first use."""
        if session_id not in self.sessions:
            seq, subject = self._deleted.pop(session_id, 0), self._subjects.pop(session_id, "")
            made = SessionRecord(session_id, agent, now, seq=seq, subject=subject)
            self.sessions[session_id] = made
        return self.sessions[session_id]

    def transcript(self, session_id: str, agent: str) -> dict[str, Row]:
        """Return the messages of one agent in one session, by id, in order."""
        session = self.sessions.get(session_id)
        return session.transcripts.get(agent, {}) if session else {}

    def of_agent(self, agent: str) -> dict[str, Row]:
        """Return all events of an agent by key, in the order of arrival."""
        return self.agents.get(agent, {})

    def of_scope(self, scope: EventScope) -> dict[str, Row]:
        """Return the events of a scope by key, grouped by agent, in the order of arrival."""
        return {
            key: row
            for agent in (list(self.agents) if scope.owner else self.agents_of(scope))
            for key, row in self.agents[agent].items()
            if scope.has(row)
        }

    def agents_of(self, scope: EventScope) -> list[str]:
        """Return the agents of a scope that have events, in any session."""
        if scope.agent is not None:
            return [scope.agent] if scope.agent in self.agents else []
        return [agent for agent, rows in self.agents.items() if rows and scope.has_agent(agent)]

    def index(self, agent: str) -> EventIndex:
        """Return the index of an agent's events, including the latest."""
        index = self._indexes.setdefault(agent, EventIndex())
        index.catch_up()
        return index

    def clear(
        self,
        session_id: str,
        *,
        agent: str | None = None,
        run: str | None = None,
        types: Collection[str] | None = None,
    ) -> list[Row]:
        """Delete and return the matching events. The session's counter is not reset."""
        session = self.sessions.get(session_id)
        if session is None:
            return []
        gone = [
            row
            for row in session.rows.values()
            if (agent is None or row.agent == agent)
            and (run is None or row.run == run)
            and (types is None or row.type in types)
        ]
        self.remove(session, gone)
        return gone

    def delete_events(self, session_id: str, ids: Collection[str]) -> list[Row]:
        """Delete and return the events with these ids. The session's counter is not reset."""
        session = self.sessions.get(session_id)
        if session is None:
            return []
        gone = [session.rows[one] for one in ids if one in session.rows]
        self.remove(session, gone)
        return gone

    def remove(self, session: SessionRecord, rows: Iterable[Row]) -> None:
        """Delete events of a session from the log and from every index."""
        gone: dict[str, list[Row]] = {}
        for row in rows:
            del session.rows[row.id]
            del self.agents[row.agent][row.key]
            gone.setdefault(row.agent, []).append(row)
            if row.type == "message":
                del session.transcripts[row.agent][row.id]
        for agent, removed in gone.items():
            self._indexes[agent].remove(removed)

    def delete(self, session_id: str) -> bool:
        """Delete a session with its events, but not its counter. Returns whether it existed."""
        self.clear(session_id)
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self._deleted[session_id] = session.seq
            if session.subject:
                self._subjects[session_id] = session.subject
        return session is not None

    def fork(self, source: SessionRecord, at: int, into: str, now: datetime) -> SessionRecord:
        """Copy the events of a session up to the number ``at`` into a new session."""
        fork = SessionRecord(
            *(into, source.agent, now, None, source.metadata, source.epoch, at),
            parent=source.id,
            parent_at=at,
            subject=source.subject,
        )
        self.sessions[into] = fork
        for row in source.rows.values():
            if row.seq <= at:
                copy = replace(row, session=into, asks=False, speaker="", borrows=False)
                self._store(fork, copy, self.given_vector(row))
        return fork

    def about(self, subject: str) -> list[str]:
        """Return the sessions about a subject, also the deleted ones."""
        deleted = [one for one, whom in self._subjects.items() if whom == subject]
        return [one.id for one in self.sessions.values() if one.subject == subject] + deleted

    def subject_of(self, session_id: str) -> str | None:
        """Return the subject of a session, or of a deleted one; ``None`` if none is stored."""
        session = self.sessions.get(session_id)
        return self._subjects.get(session_id) if session is None else session.subject

    def keep_deleted(self, session_id: str, seq: int, subject: str) -> None:
        """Store the counter and the subject of a deleted session that is not known here."""
        if session_id not in self.sessions and session_id not in self._deleted:
            self._deleted[session_id] = seq
            if subject:
                self._subjects[session_id] = subject

    def forget_subject(self, subject: str) -> None:
        """Forget which deleted sessions were about a subject."""
        self._subjects = {one: whom for one, whom in self._subjects.items() if whom != subject}

    def deleted(self) -> dict[str, int]:
        """Return the counters of deleted sessions, by session."""
        return self._deleted

    def given_vector(self, row: Row) -> list[float] | None:
        """Return the vector that the writer of an event passed, or ``None``."""
        index = self._indexes[row.agent]
        return index.vectors.get(row.key) if row.key in index.given else None

    def load(self, row: Row, vector: list[float] | None) -> None:
        """Store an imported event at its position, unless it is stored already."""
        session = self.sessions.get(row.session)
        if session is None:
            raise NotFoundError("session", row.session)
        if row.id not in session.rows:
            self._check_dimension([vector])
            self._store(session, row, vector)

    def has(self, entry: LogEntry) -> bool:
        """Return whether an entry's id is stored in its session."""
        return self._find(entry.session, entry.id) is not None

    def _find(self, session_id: str, event_id: str) -> Row | None:
        session = self.sessions.get(session_id)
        return session.rows.get(event_id) if session else None

    def _check_dimension(self, vectors: Sequence[list[float] | None]) -> None:
        dimension = self.dimension
        for at, vector in enumerate(vectors):
            if vector is None:
                continue
            dimension = dimension or len(vector)
            if len(vector) != dimension:
                raise InvalidInputError(
                    f"embeddings[{at}]",
                    f"has dimension {len(vector)}, but the log's is {dimension}",
                )
        self.dimension = dimension

    def _place(self, row: Row, vector: list[float] | None, now: datetime) -> None:
        session = self.session(row.session, row.agent, now)
        session.seq += 1
        row.epoch, row.seq = session.epoch, session.seq
        self._store(session, row, vector)

    def _store(self, session: SessionRecord, row: Row, vector: list[float] | None) -> None:
        session.rows[row.id] = row
        self.agents.setdefault(row.agent, {})[row.key] = row
        self._indexes.setdefault(row.agent, EventIndex()).add(row, vector)
        if row.type == "message":
            session.transcripts.setdefault(row.agent, {})[row.id] = row


def _row(entry: LogEntry) -> Row:
    """Return a stored event for an entry, without a position."""
    return Row(
        *(entry.agent, entry.session, entry.type, entry.body, entry.id, entry.run),
        entry.occurred_at,
    )
