"""Hostile input to a ``TaskLedger``: children, messages to tasks, waits, forks, versions, feed."""

from __future__ import annotations

from typing import Any

from holdfast.testing.probes.ledger import HELLO, read, work
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"


async def _key(store: Any, lease: Lease, kind: str) -> StepKey:
    return StepKey("s", len(await store.steps(lease.task_id)) + 1, kind)


async def _child(store: Any, lease: Lease, **how: Any) -> Any:
    message = how.pop("message", HELLO)
    key = how.pop("key", None) or await _key(store, lease, "child")
    child = await store.submit_child(lease, key, "reader", message, **how)
    return await store.get(child.id, owner=None)


async def _child_text(store: Any, lease: Lease, value: Any) -> Any:
    said = ChatMessage.user([TextBlock(value)])
    return (await _child(store, lease, message=said)).messages[0].text


async def _child_metadata(store: Any, lease: Lease, value: Any) -> Any:
    return (await _child(store, lease, metadata=value)).metadata


async def _child_step(store: Any, lease: Lease, value: Any) -> Any:
    await _child(store, lease, key=StepKey(value, kind="child"))
    return (await store.steps(lease.task_id))[-1].key.name


async def _sent(store: Any, lease: Lease, message: Any, topic: str = "t", **how: Any) -> Any:
    await store.send(lease.task_id, message, topic=topic, **how)
    step = await store.receive(lease, await _key(store, lease, "receive"), topic=topic)
    return step.result


async def _message(store: Any, lease: Lease, value: Any) -> Any:
    return (await _sent(store, lease, value))["message"]


async def _topic(store: Any, lease: Lease, value: Any) -> Any:
    await _sent(store, lease, 1, topic=value)
    return value


async def _message_id(store: Any, lease: Lease, value: Any) -> Any:
    await _sent(store, lease, 1, message_id=value)
    return NO_ECHO


async def _receive(store: Any, lease: Lease, value: Any) -> Any:
    await store.receive(lease, await _key(store, lease, "receive"), topic=value)
    return NO_ECHO


PROBES: list[Probe] = [
    work("submit_child.message", "text", _child_text),
    work("submit_child.metadata", "object", _child_metadata),
    work("submit_child.key", "id", _child_step),
    work("send.message", "json", _message),
    work("send.topic", "id", _topic),
    work("send.message_id", "absent_id", _message_id),
    work("receive.topic", "id", _receive),
    read("send.task_id", "id", lambda s, v: s.send(v, 1)),
    read("children.task_id", "id", lambda s, v: s.children(v)),
    read("wait.task_id", "id", lambda s, v: s.wait(v)),
    read("fork.task_id", "id", lambda s, v: s.fork(v, 2)),
    read("resume_failed.task_id", "id", lambda s, v: s.resume_failed(v)),
    read("claim.versions", "id", lambda s, v: s.claim("w", limit=0, versions={"writer": [v]})),
    read("claim.app_version", "absent_id", lambda s, v: s.claim("w", limit=0, app_version=v)),
]
