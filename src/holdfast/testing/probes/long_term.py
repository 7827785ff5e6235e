"""Where hostile input can enter a ``LongTermMemory``."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.contracts.long_term import LongTermMemory
from holdfast.testing.hostile import KEPT, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId

CONTRACT = "long_term"
ANN: Any = AgentId("", "ann")


async def _saved(store: LongTermMemory, **parts: Any) -> Memory:
    agent, content = parts.pop("agent", ANN), parts.pop("content", "a fact")
    saved = await store.save(agent, content, **parts)
    memory = await store.get(agent, saved, namespace=parts.get("namespace", "default"))
    assert memory is not None
    return memory


async def _save_agent(store: LongTermMemory, value: Any) -> Any:
    await _saved(store, agent=value)
    [found] = await store.search(value, "fact")
    await store.clear(value)
    assert found.content == "a fact"
    return NO_ECHO


async def _save_namespace(store: LongTermMemory, value: Any) -> Any:
    await _saved(store, namespace=value)
    [found] = await store.search(ANN, "fact", namespace=value)
    assert found.content == "a fact"
    return NO_ECHO


async def _save_content(store: LongTermMemory, value: Any) -> Any:
    saved = await _saved(store, content=value)
    [recent] = await store.search(ANN, "", limit=1)
    assert recent.content == value
    return saved.content


async def _save_metadata(store: LongTermMemory, value: Any) -> Any:
    return (await _saved(store, metadata=value)).metadata


async def _save_topic(store: LongTermMemory, value: Any) -> Any:
    await _saved(store, topic=value)
    return (await store.search(ANN, "fact", topic=value))[0].topic


async def _save_source(store: LongTermMemory, value: Any) -> Any:
    return (await _saved(store, source=value)).source


async def _save_key(store: LongTermMemory, value: Any) -> Any:
    first = await _saved(store, idempotency_key=value)
    again = await _saved(store, idempotency_key=value)
    assert value is None or first.id == again.id
    return NO_ECHO


async def _save_supersedes(store: LongTermMemory, value: Any) -> Any:
    with contextlib.suppress(NotFoundError):
        await store.save(ANN, "a fact", supersedes=value)
        assert value is None
    return NO_ECHO


async def _save_entities(store: LongTermMemory, value: Any) -> Any:
    with contextlib.suppress(NotSupportedError):
        await store.save(ANN, "a fact", entities=[value])
    return NO_ECHO


def _reads(call: Callable[[LongTermMemory, Any], Awaitable[Any]]) -> Any:
    async def use(store: LongTermMemory, value: Any) -> Any:
        assert not await call(store, value)
        return NO_ECHO

    return use


def _none_is_absent(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


PROBES = (
    Probe("save.agent_id", "id", _save_agent),
    Probe("save.namespace", "id", _save_namespace),
    Probe("save.content", "text", _save_content),
    Probe("save.metadata", "object", _save_metadata),
    Probe("save.topic", "text", _save_topic),
    Probe("save.source", "text", _save_source),
    Probe("save.idempotency_key", "id", _save_key, judge=_none_is_absent),
    Probe("save.supersedes", "id", _save_supersedes, judge=_none_is_absent),
    Probe("save.entities", "id", _save_entities),
    Probe("search.agent_id", "id", _reads(lambda store, value: store.search(value, "fact"))),
    Probe("search.query", "text", _reads(lambda store, value: store.search(ANN, value))),
    Probe(
        "search.namespace",
        "id",
        _reads(lambda store, value: store.search(ANN, "fact", namespace=value)),
    ),
    Probe(
        "search.topic",
        "text",
        _reads(lambda store, value: store.search(ANN, "fact", topic=value)),
        judge=_none_is_absent,
    ),
    Probe("get.agent_id", "id", _reads(lambda store, value: store.get(value, "m"))),
    Probe("get.memory_id", "id", _reads(lambda store, value: store.get(ANN, value))),
    Probe("get.namespace", "id", _reads(lambda store, value: store.get(ANN, "m", namespace=value))),
    Probe("delete.agent_id", "id", _reads(lambda store, value: store.delete(value, "m"))),
    Probe("delete.memory_id", "id", _reads(lambda store, value: store.delete(ANN, value))),
    Probe(
        "delete.namespace",
        "id",
        _reads(lambda store, value: store.delete(ANN, "m", namespace=value)),
    ),
    Probe("clear.agent_id", "id", _reads(lambda store, value: store.clear(value))),
    Probe("clear.namespace", "id", _reads(lambda store, value: store.clear(ANN, namespace=value))),
)
