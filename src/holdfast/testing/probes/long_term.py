"""Where hostile input can enter a ``FactStore``."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.contracts.long_term_memory import FactStore
from holdfast.testing.hostile import KEPT, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId

CONTRACT = "long_term"
ANN: Any = AgentId("", "ann")


async def _saved(store: FactStore, **parts: Any) -> Memory:
    agent, content = parts.pop("agent", ANN), parts.pop("content", "a fact")
    saved = await store.save(agent, content, **parts)
    memory = await store.get(agent, saved, namespace=parts.get("namespace", "default"))
    assert memory is not None
    return memory


async def _save_agent(store: FactStore, value: Any) -> Any:
    await _saved(store, agent=value)
    [found] = await store.search(value, "fact")
    await store.clear(value)
    assert found.content == "a fact"
    return NO_ECHO


async def _save_namespace(store: FactStore, value: Any) -> Any:
    await _saved(store, namespace=value)
    [found] = await store.search(ANN, "fact", namespace=value)
    assert found.content == "a fact"
    return NO_ECHO


async def _save_content(store: FactStore, value: Any) -> Any:
    saved = await _saved(store, content=value)
    [recent] = await store.search(ANN, "", limit=1)
    assert recent.content == value
    return saved.content


async def _save_metadata(store: FactStore, value: Any) -> Any:
    return (await _saved(store, metadata=value)).metadata


async def _save_topic(store: FactStore, value: Any) -> Any:
    await _saved(store, topic=value)
    return (await store.search(ANN, "fact", topic=value))[0].topic


async def _save_source(store: FactStore, value: Any) -> Any:
    return (await _saved(store, source=value)).source


async def _save_key(store: FactStore, value: Any) -> Any:
    first = await _saved(store, idempotency_key=value)
    again = await _saved(store, idempotency_key=value)
    assert value is None or first.id == again.id
    return NO_ECHO


async def _save_supersedes(store: FactStore, value: Any) -> Any:
    with contextlib.suppress(NotFoundError):
        await store.save(ANN, "a fact", supersedes=value)
        assert value is None
    return NO_ECHO


async def _save_entities(store: FactStore, value: Any) -> Any:
    with contextlib.suppress(NotSupportedError):
        await store.save(ANN, "a fact", entities=[value])
    return NO_ECHO


async def _old_fact(store: FactStore) -> None:
    await store.save(ANN, "an old fact")


async def _update(store: FactStore, **parts: Any) -> Memory:
    [old] = await store.list(ANN, limit=1)
    content = parts.pop("content", "a fact")
    newer = await store.get(ANN, await store.update(ANN, old.id, content, **parts))
    assert newer is not None
    return newer


async def _update_content(store: FactStore, value: Any) -> Any:
    return (await _update(store, content=value)).content


async def _update_metadata(store: FactStore, value: Any) -> Any:
    return (await _update(store, metadata=value)).metadata


async def _update_topic(store: FactStore, value: Any) -> Any:
    newer = await _update(store, topic=value)
    return NO_ECHO if value is None else newer.topic


async def _update_source(store: FactStore, value: Any) -> Any:
    newer = await _update(store, source=value)
    return NO_ECHO if value is None else newer.source


async def _update_key(store: FactStore, value: Any) -> Any:
    [old] = await store.list(ANN, limit=1)
    first = await store.update(ANN, old.id, "a fact", idempotency_key=value)
    if value is not None:
        assert first == await store.update(ANN, old.id, "a fact", idempotency_key=value)
    return NO_ECHO


async def _update_entities(store: FactStore, value: Any) -> Any:
    with contextlib.suppress(NotSupportedError):
        await _update(store, entities=[value])
    return NO_ECHO


def _finds_nothing(call: Callable[[FactStore, Any], Awaitable[Any]]) -> Any:
    async def use(store: FactStore, value: Any) -> Any:
        with contextlib.suppress(NotFoundError):
            await call(store, value)
            raise AssertionError("it found a memory")
        return NO_ECHO

    return use


def _reads(call: Callable[[FactStore, Any], Awaitable[Any]]) -> Any:
    async def use(store: FactStore, value: Any) -> Any:
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
    Probe(
        "update.agent_id",
        "id",
        _finds_nothing(lambda store, value: store.update(value, "m", "a fact")),
    ),
    Probe(
        "update.memory_id",
        "id",
        _finds_nothing(lambda store, value: store.update(ANN, value, "a fact")),
    ),
    Probe(
        "update.namespace",
        "id",
        _finds_nothing(lambda store, value: store.update(ANN, "m", "a fact", namespace=value)),
    ),
    Probe("update.content", "text", _update_content, _old_fact),
    Probe("update.metadata", "object", _update_metadata, _old_fact, judge=_none_is_absent),
    Probe("update.topic", "text", _update_topic, _old_fact, judge=_none_is_absent),
    Probe("update.source", "text", _update_source, _old_fact, judge=_none_is_absent),
    Probe("update.idempotency_key", "id", _update_key, _old_fact, judge=_none_is_absent),
    Probe("update.entities", "id", _update_entities, _old_fact),
    Probe("namespaces.agent_id", "id", _reads(lambda store, value: store.namespaces(value))),
    Probe(
        "namespaces.after",
        "id",
        _reads(lambda store, value: store.namespaces(ANN, after=value)),
        judge=_none_is_absent,
    ),
    Probe("list.agent_id", "id", _reads(lambda store, value: store.list(value))),
    Probe("list.namespace", "id", _reads(lambda store, value: store.list(ANN, namespace=value))),
    Probe(
        "list.after",
        "id",
        _reads(lambda store, value: store.list(ANN, after=value)),
        judge=_none_is_absent,
    ),
    Probe(
        "list.topic",
        "text",
        _reads(lambda store, value: store.list(ANN, topic=value)),
        judge=_none_is_absent,
    ),
    Probe("clear.agent_id", "id", _reads(lambda store, value: store.clear(value))),
    Probe("clear.namespace", "id", _reads(lambda store, value: store.clear(ANN, namespace=value))),
)
