"""Finds and counts the records that an erasure deletes from memory, and stores the receipts."""

# ruff: noqa: SLF001 - it reads the tables of its neighbours, which have no other reader

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.engines.inmemory.blob_index import InMemoryBlobIndex
from holdfast.engines.inmemory.boards import InMemoryBoards
from holdfast.engines.inmemory.channel import InMemoryChannels
from holdfast.engines.inmemory.checkpoints import InMemoryCheckpoints
from holdfast.engines.inmemory.data_keys import InMemoryDataKeys
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.facts import Fact, Facts
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.engines.inmemory.items import InMemoryItems
from holdfast.engines.inmemory.keys import InMemoryKeys
from holdfast.engines.inmemory.long_term import InMemoryLongTerm
from holdfast.engines.inmemory.schedules import ScheduleData
from holdfast.engines.inmemory.session_log import SessionLog
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.engines.inmemory.tasks.data import LedgerData
from holdfast.engines.inmemory.vector import InMemoryVectors
from holdfast.spi.erasure import (
    STORES,
    Counts,
    ErasureDraft,
    ErasureRecord,
    ErasureScope,
    ErasureStorage,
    Key,
    LastReceipt,
    Store,
)
from holdfast.spi.long_term import FactScope
from holdfast.values.codec import decode_json
from holdfast.values.owners import split_owned


@dataclass
class _Data:
    erasures: dict[str, ErasureRecord] = field(default_factory=dict)
    last: LastReceipt = field(default_factory=lambda: LastReceipt(0, ""))


class InMemoryErasures(ErasureStorage):
    """Finds and counts the records of an erasure in all stores, and stores the receipts.

    >>> erasures = InMemoryErasures(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        self._data = engine.table(tenant, _Data)

    async def find(self, store: Store, scope: ErasureScope, limit: int) -> Sequence[Key]:
        """Return keys of a store's records that are in scope."""
        return self._keys(store, scope)[:limit]

    async def count(self, scope: ErasureScope) -> Counts:
        """Return how many records each store has in scope."""
        found = {store: self._count(store, scope) for store in STORES}
        return {store: count for store, count in found.items() if count}

    async def forks(self, session_id: str) -> Sequence[str]:
        """Return the forks of a session, and the forks of those, the latest first."""
        sessions = self._engine.table(self._tenant, SessionLog).sessions
        found, depth = [session_id], 0
        while depth < len(found):
            found += [one.id for one in sessions.values() if one.parent == found[depth]]
            depth += 1
        owner, _ = split_owned(session_id)
        return [one for one in reversed(found[1:]) if split_owned(one)[0] == owner]

    async def sessions_about(self, subject: str) -> Sequence[str]:
        """Return the sessions about a subject, also deleted ones."""
        return self._engine.table(self._tenant, SessionLog).about(subject)

    async def begin(self, draft: ErasureDraft) -> ErasureRecord:
        """Store an erasure. If its scope has an unfinished one, return that instead."""
        for one in self._data.erasures.values():
            if not one.finished and (one.kind, one.scope_id) == (draft.scope.kind, draft.scope.id):
                return one
        made = ErasureRecord(
            *(draft.id, draft.scope.kind, draft.scope.id, self._engine.now(), draft.counts)
        )
        self._data.erasures[draft.id] = made
        return made

    async def shred(self, erasure_id: str, scope: ErasureScope) -> Sequence[int]:
        """Destroy the data keys of the scope, and record their numbers."""
        record = self._data.erasures[erasure_id]
        gone = InMemoryDataKeys(self._engine, tenant=self._tenant).shred(scope.has_owner)
        record = dataclasses.replace(record, data_keys=(*record.data_keys, *gone))
        self._data.erasures[erasure_id] = record
        return record.data_keys

    async def last(self) -> LastReceipt:
        """Return the newest receipt."""
        return self._data.last

    async def forget_rest(self, scope: ErasureScope) -> None:
        """Delete the index entries of agents without events, and the subject's expired facts."""
        log = self._engine.table(self._tenant, SessionLog)
        for agent in [one for one, rows in log.agents.items() if not rows]:
            if scope.has_agent(agent):
                log.agents.pop(agent)
                log._indexes.pop(agent, None)
        for facts in _long_term(self._engine, self._tenant).values():
            if any(_is_about(one, scope) for one in facts.all.values()):
                facts.purge(self._engine.now())

    async def finish(
        self, erasure_id: str, number: int, receipt: str, sha256: str
    ) -> ErasureRecord | None:
        """Store the receipt of an erasure, and delete its scope from the record."""
        record = self._data.erasures[erasure_id]
        if record.finished:
            return record
        if number != self._data.last.number + 1:
            return None
        if record.kind == "subject":
            self._engine.table(self._tenant, SessionLog).forget_subject(record.scope_id)
        self._data.last = LastReceipt(number, sha256)
        self._data.erasures[erasure_id] = dataclasses.replace(
            record,
            scope_id="",
            number=number,
            finished_at=self._engine.now(),
            receipt=decode_json(receipt),
        )
        return self._data.erasures[erasure_id]

    async def list_erasures(self, limit: int, after_id: str | None) -> Sequence[ErasureRecord]:
        """Return a page of erasures, ordered by id."""
        ids = sorted(one for one in self._data.erasures if one > (after_id or ""))
        return [self._data.erasures[one] for one in ids[:limit]]

    def _count(self, store: Store, scope: ErasureScope) -> int:
        keys = self._keys(store, scope)
        if store == "facts":
            facts = _long_term(self._engine, self._tenant)
            return sum(1 if one else len(facts[at, agent].all) for at, agent, *one in keys)
        return len(keys)

    def _keys(self, store: Store, scope: ErasureScope) -> list[Key]:
        return _KEYS[store](self._engine, self._tenant, scope)


def _tasks(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    ledger = engine.table(tenant, LedgerData)
    found = {
        one.id: None
        for one in ledger.tasks.values()
        if scope.has_task(one.owner, one.session_id, str(one.agent))
    }
    for task_id, marks in ledger.cleanup.items():
        if task_id not in ledger.tasks and any(
            scope.has_task(one.owner, one.session_id, one.mark.agent) for one in marks.values()
        ):
            found[task_id] = None
    return [(one,) for one in found]


def _schedules(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    rows = engine.table(tenant, ScheduleData).rows.values()
    drafts = (row.stored.draft for row in rows)
    return [
        (one.owner, one.id)
        for one in drafts
        if scope.has_task(one.owner, one.session_id, str(one.agent))
    ]


def _sessions(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    log = engine.table(tenant, SessionLog)
    if scope.kind != "agent":
        return [(one,) for one in log.sessions if scope.has_session(one)]
    with_events = {row.session for row in log.of_agent(scope.id).values()}
    return [
        (one.id, scope.id)
        for one in log.sessions.values()
        if one.id in with_events or (one.agent == scope.id and not one.rows)
    ]


def _boards(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    return [
        (one.facts.id,)
        for one in InMemoryBoards(engine, tenant=tenant)._data.boards.values()
        if scope.has_board(one.facts.conversation_id, one.facts.agent_id)
    ]


def _channels(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    channels = InMemoryChannels(engine, tenant=tenant)._data.channels
    return [(one,) for one in channels if channels[one].events and scope.has_id(one)]


def _items(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    return [
        (owner, at.key, *at.namespace)
        for owner, rows in InMemoryItems(engine, tenant=tenant)._data.owners.items()
        for at, row in rows.items()
        if scope.has_owner(owner) or scope.is_about(row.subject)
    ]


def _blobs(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    index = InMemoryBlobIndex(engine, tenant=tenant)
    return [
        (ref,)
        for ref, row in index._data.rows.items()
        if scope.has_owner(row.facts.subject) and index._live(ref)
    ]


def _collections(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    held = InMemoryVectors(engine, tenant=tenant)._data.collections
    whole: list[Key] = [(name,) for name in held if scope.has_id(name)]
    about = [
        (name, key)
        for name in held
        if scope.kind == "subject" and not scope.has_id(name)
        for key, row in held[name].rows.items()
        if row.subject == scope.id
    ]
    return whole + about


def _facts(engine: InMemory, tenant: str, scope: ErasureScope) -> list[Key]:
    facts = _long_term(engine, tenant)
    whole: list[Key] = [at for at in facts if facts[at].all and scope.has_agent(at[1])]
    about = [
        (*at, one.id)
        for at in facts
        if not scope.has_agent(at[1])
        for one in facts[at].all.values()
        if _is_about(one, scope) and (one.expires_at is None or one.expires_at > engine.now())
    ]
    return whole + about


def _is_about(fact: Fact, scope: ErasureScope) -> bool:
    return scope.kind == "subject" and fact.draft.subject == scope.id


def _long_term(engine: InMemory, tenant: str) -> dict[FactScope, Facts]:
    return InMemoryLongTerm(engine, tenant=tenant)._data.scopes


_KEYS: Mapping[Store, Callable[[InMemory, str, ErasureScope], list[Key]]] = {
    "keys": lambda engine, tenant, scope: [
        (one.id,)
        for one in InMemoryKeys(engine, tenant=tenant)._data.by_digest.values()
        if scope.has_owner(one.owner)
    ],
    "schedules": _schedules,
    "tasks": _tasks,
    "sessions": _sessions,
    "states": lambda engine, tenant, scope: [
        (one,)
        for one in InMemoryStates(engine, tenant=tenant)._data.states
        if scope.has_session(one)
    ],
    "facts": _facts,
    "collections": _collections,
    "entities": lambda engine, tenant, scope: [
        (key,)
        for key, one in InMemoryGraph(engine, tenant=tenant)._data.nodes.items()
        if scope.has_id(key) or scope.is_about(one.subject)
    ],
    "relationships": lambda engine, tenant, scope: [
        (key,)
        for key, one in InMemoryGraph(engine, tenant=tenant)._data.edges.items()
        if scope.is_about(one.subject) and not scope.has_id(key)
    ],
    "boards": _boards,
    "channels": _channels,
    "threads": lambda engine, tenant, scope: [
        (one,)
        for one in InMemoryCheckpoints(engine, tenant=tenant)._data.threads
        if scope.has_session(one)
    ],
    "items": _items,
    "blobs": _blobs,
}
