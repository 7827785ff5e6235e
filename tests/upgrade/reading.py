"""Read everything that ``filling.py`` stored, by calls that every version has."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from holdfast import AgentId, State, TaskRecord

PLAIN = ("acme", "zenith")
"""The tenants on Postgres alone."""
HOT = "hot"
"""The tenant on Redis beside Postgres."""
CHANNELS = ("alerts",)
FAR_SECONDS = 3_000_000_000.0
"""So long that a fixture does not expire."""
ANA = AgentId("harbour", "pilot")
LONG_AGO = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
LATER = LONG_AGO + timedelta(days=36_500)


def plain(value: Any) -> Any:
    """What JSON can hold of a value; a dataclass is its fields by name."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
        if isinstance(value, TaskRecord):
            # The version that recorded called it so.
            fields.setdefault("context_id", fields.get("session_id"))
        return fields
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value


def same(expected: Any, found: Any) -> Any:
    """What was found, without the fields that the version that recorded did not have.

    >>> same({"a": 1, "list": [{"b": 2}]}, {"a": 1, "list": [{"b": 2, "new": 0}], "new": 3})
    {'a': 1, 'list': [{'b': 2}]}
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: same(expected[key], found[key]) for key in expected if key in found}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [same(one, other) for one, other in zip(expected, found, strict=True)]
    return found


async def read(state: State, refs: list[str], key: str) -> dict[str, Any]:
    """Everything of a tenant on Postgres alone."""
    return {
        "history": await state.history.get_messages(ANA, session_id="s1"),
        "count": await state.history.count_messages(ANA, session_id="s1"),
        "recent": await state.episodes.recent(ANA, limit=100),
        "between": await state.episodes.between(ANA, LONG_AGO, LATER, session_id="s2"),
        "by words": [
            one.event.id for one in await state.episodes.recall(ANA, "enter", types=["decision"])
        ],
        "by meaning": [
            one.event.id
            for one in await state.episodes.recall(ANA, [0.0, 1.0, 0.0, 0.5], session_id="s2")
        ],
        "sessions": await state.episodes.list_sessions(ANA),
        "states": [await state.short_term.get_state(one) for one in ("s1", "s3")],
        "boards": await state.boards.get_boards_by_conversation("conv-1"),
        "facts": [
            [one.content, one.topic]
            for one in [
                *await state.long_term.search(ANA, "how many tugs?"),
                *await state.long_term.search(ANA, "outer buoy", namespace="rules"),
            ]
        ],
        "graph": await state.graph.get_neighbors("meridian"),
        "entities": await state.graph.find_entities(["North Quay"]),
        "collections": await state.vectors.list_collections(),
        "documents": await state.vectors.get(["tides", "crane"], collection="manuals"),
        "nearest": [
            one.id
            for one in await state.vectors.search(
                [1.0, 0.1], collection="manuals", filter={"y": {"$gte": 2025}}
            )
        ],
        "channel": await state.channel(CHANNELS[0]).read(),
        "blobs": [[await state.blobs.stat(ref), await state.blobs.resolve(ref)] for ref in refs],
        "key": await state.keys.verify(key),
        "keys": await state.keys.list_keys(),
        "tasks": await read_tasks(state),
    }


async def read_tasks(state: State) -> dict[str, Any]:
    """Every task of every owner with what hangs on it, and the sessions of owned contexts."""
    ledger, found = state.tasks, {}
    page = await ledger.list(owner=None, limit=100)
    for task in page.tasks:
        found[task.id] = {
            "record": await ledger.get(task.id, owner=None),
            "events": await ledger.events(task.id, owner=None),
            "steps": await ledger.steps(task.id),
            "push": await ledger.list_push_configs(task.id, owner=None),
            "outbox": await ledger.list_outbox(task.id, owner=None),
            "feedback": await ledger.list_feedback(task.id, owner=None),
        }
    contexts = await ledger.list_contexts(owner=None)
    memories = []
    for owner in ("", "ana"):
        # Before owners were kept apart, all of them were in the state of the tenant.
        theirs = state.for_owner(owner) if hasattr(state, "for_owner") else state
        memory = theirs.memory("clerk", session_id=f"ctx-{owner or 'none'}")
        memories.append([await memory.recent(), await memory.state.get()])
    return {"tasks": found, "contexts": contexts, "memories": memories}


async def read_hot(state: State) -> dict[str, Any]:
    """Everything of the tenant with a Redis."""
    return {
        "recent": {
            session: await state.episodes.recent(ANA, session_id=session, limit=100)
            for session in ("old", "new")
        },
        "history": await state.history.get_messages(ANA, session_id="new"),
        "states": [await state.short_term.get_state(one) for one in ("old", "new", "brief")],
    }
