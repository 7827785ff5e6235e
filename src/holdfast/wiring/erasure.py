"""How an erasure deletes one record, for each store of a state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from holdfast.erasure.eraser import Delete, Eraser
from holdfast.erasure.receipts import ReceiptKey
from holdfast.sealing.data_keys import KEPT_SECONDS
from holdfast.spi.erasure import Key, Store
from holdfast.values.checks import check_absent_id, check_id, check_unreserved
from holdfast.values.erasure import ErasureScope
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.identity import ALL_AGENTS, Agent, AgentId
from holdfast.values.items import ItemPut
from holdfast.values.owners import ANY_OWNER, owned_id
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import WIRINGS
from holdfast.wiring.stores import Stores, stores_of_owner

_OUTLIVES = {
    "postgres": (
        "Postgres: dead rows until VACUUM, the WAL until it is recycled, and backups",
        "Postgres: the ids of deleted sessions for 7 days, so that no late write brings them back",
    ),
    "hybrid": ("Redis: its append-only file until it is rewritten",),
    "objects": ("the object store: versions and backups that its own rules keep",),
}
"""Where deleted data may survive, by engine."""


def erasure_scope(
    of: str, *, tenant: str | None, subject: str | None, agent: Agent | None, session: str | None
) -> ErasureScope:
    """Return the scope that the arguments of ``State.erase`` name, in the tenant ``of``.

    >>> erasure_scope("acme", tenant=None, subject="ana", agent=None, session="s1")
    ErasureScope(kind='session', id='holdfast.owner:3:ana:s1')
    """
    owner = check_unreserved("subject", check_absent_id("subject", subject))
    if tenant is not None:
        if tenant != of or (subject, agent, session) != (None, None, None):
            raise InvalidInputError(
                "tenant", f"must be {of!r}, the tenant of this state, without another scope"
            )
        return ErasureScope("tenant", of)
    if agent is not None and session is not None:
        raise InvalidInputError("session", "cannot be given together with agent: erase each alone")
    if session is not None:
        return ErasureScope("session", owned_id(owner, check_id("session", session)))
    if agent is not None:
        return ErasureScope("agent", owned_id(owner, str(AgentId.parse(agent))))
    if not owner:
        raise InvalidInputError("subject", "must be an owner, or give tenant=, agent= or session=")
    return ErasureScope("subject", owner)


def eraser_of(connections: Connections, stores: Stores, tenant: str) -> Eraser:
    """Return the eraser of a tenant's stores.

    ::

        report = await eraser_of(connections, stores, "acme").erase(scope)
    """
    if connections.erasures is None:
        raise NotSupportedError(
            " and ".join(sorted(set(connections.engines.values()))),
            "erase",
            why=f"it needs Postgres or the in-memory engine, as in {WIRINGS}",
        )
    return Eraser(
        connections.erasures(tenant),
        _deletes(stores),
        tenant=tenant,
        finders={store: make(tenant) for store, make in connections.finders.items()},
        flush=_flush(connections),
        key=ReceiptKey(connections.receipt_key) if connections.receipt_key else None,
        outlives=_outlives(connections),
        forget=connections.seal(tenant).forget,
        settle=_settle(connections),
    )


def _settle(connections: Connections) -> Callable[[], Awaitable[object]] | None:
    """Return a function that waits until no process caches a destroyed key; ``None`` in memory."""
    if all(one.engine == "inmemory" for one in connections.connected):
        return None
    return lambda: asyncio.sleep(KEPT_SECONDS)


def _outlives(connections: Connections) -> Sequence[str]:
    names = {one.engine for one in connections.connected}
    return [text for name, texts in _OUTLIVES.items() if name in names for text in texts]


def _flush(connections: Connections) -> Callable[[], Awaitable[object]] | None:
    """Return a function that copies all events in Redis to Postgres; ``None`` without a hybrid."""
    side = connections.hybrid
    return None if side is None else side.consolidator.drain


def _deletes(stores: Stores) -> dict[Store, Delete]:
    """Return the function that deletes a record, for each store that the state has."""
    return {
        store: partial(delete, stores)
        for store, (attribute, delete) in _DELETES.items()
        if getattr(stores, attribute) is not None
    }


async def _delete_key(stores: Any, key: Key) -> None:
    await stores.keys.revoke(key[0])
    await stores.keys.delete(key[0])


async def _delete_task(stores: Any, key: Key) -> None:
    """Delete a task, then its files. Its cleanup marks name the files, and are deleted last."""
    tasks, [task_id] = stores.tasks, key
    await tasks.delete(task_id, owner=ANY_OWNER)
    marks = await tasks.list_cleanup(task_id)
    refs = [one.ref for one in marks if one.kind != "run"]
    shared = await tasks.held_elsewhere(task_id, refs) if refs else set[str]()
    for ref in refs:
        if stores.blobs is not None and ref not in shared:
            await stores.blobs.delete(ref)
    await tasks.delete_cleanup(marks)


async def _delete_session(stores: Any, key: Key) -> None:
    """Delete a session; for an agent, only its events, and the session if no events are left."""
    episodes, session = stores.episodes, key[0]
    for agent in key[1:]:
        await episodes.clear(session, agent_id=AgentId.parse(agent))
        found = await episodes.get_session(session)
        if found is None or str(found.agent_id) != agent:
            return
        if await episodes.recent(ALL_AGENTS, session_id=session, limit=1):
            return
    await episodes.delete_session(session)


async def _delete_facts(stores: Any, key: Key) -> None:
    """Delete all facts of an agent in a namespace, or one of them."""
    namespace, agent, *ids = key
    if not ids:
        await stores.long_term.clear(AgentId.parse(agent), namespace=namespace)
    for one in ids:
        await stores.long_term.delete(AgentId.parse(agent), one, namespace=namespace)


async def _delete_documents(stores: Any, key: Key) -> None:
    """Delete a collection, or one of its documents."""
    collection, *ids = key
    if ids:
        await stores.vectors.delete(ids, collection=collection)
    else:
        await stores.vectors.delete_collection(collection)


async def _delete_item(stores: Any, key: Key) -> None:
    owner, name, *namespace = key
    whose: Any = stores_of_owner(stores, owner) if owner else stores
    await whose.items.put_many([ItemPut(tuple(namespace), name, None)])


_DELETES: Mapping[Store, tuple[str, Callable[[Any, Key], Awaitable[object]]]] = {
    "keys": ("keys", _delete_key),
    "schedules": ("schedules", lambda its, key: its.schedules.delete(key[1], owner=key[0])),
    "tasks": ("tasks", _delete_task),
    "sessions": ("episodes", _delete_session),
    "states": ("short_term", lambda its, key: its.short_term.clear(key[0])),
    "facts": ("long_term", _delete_facts),
    "collections": ("vectors", _delete_documents),
    "entities": ("graph", lambda its, key: its.graph.delete_entity(key[0])),
    "relationships": ("graph", lambda its, key: its.graph.delete_relationship(key[0])),
    "boards": ("boards", lambda its, key: its.boards.delete_task_list(key[0])),
    "channels": ("channel", lambda its, key: its.channel(key[0]).clear()),
    "threads": ("checkpoints", lambda its, key: its.checkpoints.delete_threads([key[0]])),
    "items": ("items", _delete_item),
    "blobs": ("blobs", lambda its, key: its.blobs.delete(key[0])),
}
"""For each store: the attribute of ``Stores``, and the function that deletes one record."""
