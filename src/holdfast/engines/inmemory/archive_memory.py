"""Converts sessions, events, states and facts in memory to archive records, and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.event_index import Row
from holdfast.engines.inmemory.facts import Fact, Facts
from holdfast.engines.inmemory.long_term import _Data as _FactData
from holdfast.engines.inmemory.session_log import SessionLog, SessionRecord
from holdfast.engines.inmemory.short_term import _Data as _StateData
from holdfast.engines.inmemory.short_term import _State, _Version
from holdfast.spi.archive import records as of
from holdfast.spi.archive.vectors import pack_vector, unpack_vector
from holdfast.spi.fact_draft import FactDraft


def dump_sessions(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.SessionRecord]:
    """Yield the sessions."""
    del at
    for one in _sorted(engine.table(tenant, SessionLog).sessions):
        yield of.SessionRecord(
            one.id,
            one.agent,
            one.started_at,
            one.epoch,
            one.seq,
            metadata=one.metadata,
            ended_at=one.ended_at,
            parent=one.parent,
            parent_at=one.parent_at,
            subject=one.subject,
        )


def load_session(engine: InMemory, tenant: str, one: of.SessionRecord) -> None:
    """Store a session."""
    sessions = engine.table(tenant, SessionLog).sessions
    stored = SessionRecord(
        *(one.id, one.agent, one.started_at, one.ended_at, one.metadata, one.epoch, one.seq),
        parent=one.parent,
        parent_at=one.parent_at,
        subject=one.subject,
    )
    sessions.setdefault(one.id, stored)


def dump_deleted_sessions(
    engine: InMemory, tenant: str, at: datetime
) -> Iterator[of.DeletedSessionRecord]:
    """Yield the counters and subjects of deleted sessions, with which a new session continues."""
    del at
    log = engine.table(tenant, SessionLog)
    for key, seq in sorted(log.deleted().items()):
        yield of.DeletedSessionRecord(key, seq, log.subject_of(key) or "")


def load_deleted_session(engine: InMemory, tenant: str, one: of.DeletedSessionRecord) -> None:
    """Store the counter and the subject of a deleted session."""
    engine.table(tenant, SessionLog).keep_deleted(one.id, one.seq, one.subject)


def dump_events(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.EventRecord]:
    """Yield the events of all sessions."""
    del at
    log = engine.table(tenant, SessionLog)
    for session in _sorted(log.sessions):
        for row in sorted(session.rows.values(), key=lambda row: row.position):
            vector = log.given_vector(row)
            yield of.EventRecord(
                row.session,
                row.epoch,
                row.seq,
                row.id,
                row.agent,
                row.type,
                row.occurred_at,
                row.body,
                run=row.run,
                vector=None if vector is None else pack_vector(vector),
            )


def load_event(engine: InMemory, tenant: str, one: of.EventRecord) -> None:
    """Store an event."""
    row = Row(one.agent, one.session, one.type, one.body, one.id, one.run, one.occurred_at)
    row.epoch, row.seq = one.epoch, one.seq
    vector = None if one.vector is None else unpack_vector(one.vector)
    engine.table(tenant, SessionLog).load(row, vector)


def dump_states(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.StateRecord]:
    """Yield the states that have not expired."""
    for session, one in sorted(engine.table(tenant, _StateData).states.items()):
        if one.expires_at is None or one.expires_at > at:
            yield of.StateRecord(
                session,
                one.version,
                dict(sorted(one.values.items())),
                ttl_seconds=one.ttl_seconds,
                expires_at=one.expires_at,
            )


def load_state(engine: InMemory, tenant: str, one: of.StateRecord) -> None:
    """Store a state. Later versions are greater than its version."""
    data = engine.table(tenant, _StateData)
    stored = _State(dict(one.values), one.version, one.ttl_seconds, one.expires_at)
    data.states.setdefault(one.session, stored)
    data.last_version = max(data.last_version, one.version)


def dump_earlier_states(
    engine: InMemory, tenant: str, at: datetime
) -> Iterator[of.EarlierStateRecord]:
    """Yield the kept versions of states that have not expired."""
    for session, state in sorted(engine.table(tenant, _StateData).states.items()):
        if state.expires_at is None or state.expires_at > at:
            for version, one in state.earlier.items():
                values = dict(sorted(one.values.items()))
                yield of.EarlierStateRecord(session, version, values, one.written_at)


def load_earlier_state(engine: InMemory, tenant: str, one: of.EarlierStateRecord) -> None:
    """Store a version of a state, in the order of versions."""
    state = engine.table(tenant, _StateData).states.get(one.session)
    if state is not None:
        state.earlier.setdefault(one.version, _Version(dict(one.values), one.written_at))


def dump_facts(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.FactRecord]:
    """Yield the facts that have not expired, each scope in the order of saves."""
    for (namespace, agent), facts in sorted(engine.table(tenant, _FactData).scopes.items()):
        for one in facts.all.values():
            if one.expires_at is not None and one.expires_at <= at:
                continue
            draft = one.draft
            yield of.FactRecord(
                namespace,
                agent,
                one.id,
                draft.content,
                one.created_at,
                draft.confidence,
                metadata=draft.metadata,
                topic=draft.topic,
                source=draft.source,
                entities=draft.entities,
                key=draft.key,
                fingerprint=one.fingerprint,
                expires_at=one.expires_at,
                superseded_by=one.superseded_by,
                subject=draft.subject,
            )


def load_fact(engine: InMemory, tenant: str, one: of.FactRecord) -> None:
    """Store a fact."""
    facts = engine.table(tenant, _FactData).scopes.setdefault((one.namespace, one.agent), Facts())
    if one.id in facts.all:
        return
    draft = FactDraft(
        one.content,
        one.metadata,
        one.topic,
        one.confidence,
        one.source,
        one.entities,
        key=one.key,
        subject=one.subject,
    )
    facts.load(
        Fact(
            one.id,
            facts.saves,
            draft,
            one.fingerprint,
            one.created_at,
            one.expires_at,
            one.superseded_by,
        )
    )


def _sorted(sessions: dict[str, SessionRecord]) -> Iterator[SessionRecord]:
    return (sessions[key] for key in sorted(sessions))
