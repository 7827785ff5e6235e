"""Hostile input to what a ``TaskLedger`` does with tasks that somebody else runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.testing.probes.ledger import never, read
from holdfast.testing.probes.probe import Kind, Probe, absent
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.tasks.events import ArtifactChunk
from holdfast.values.tasks.reports import Report, StatusReport

CONTRACT = "tasks"
NAME = "adopted task"


async def _adopted(store: Any) -> None:
    await store.adopt(NAME, agent="writer")


def _adopt(
    name: str, kind: Kind, given: Callable[[Any], dict[str, Any]], seen: Callable[[Any], Any]
) -> Probe:
    async def use(store: Any, value: Any) -> Any:
        how = {"task_id": NAME, "agent": "writer", **given(value)}
        task = await store.adopt(how.pop("task_id"), **how)
        found = seen(await store.get(task.id))
        await store.delete(task.id)
        return found

    expect = absent if kind == "absent_id" else lambda value: value
    return Probe(f"adopt.{name}", kind, use, expect=expect)


def _record(
    name: str, kind: Kind, report: Callable[[Any], Report], seen: Callable[[Any], Any], **how: Any
) -> Probe:
    async def use(store: Any, value: Any) -> Any:
        task = await store.get(NAME)
        await store.record(NAME, [report(value)], expected_version=task.version)
        return seen(await store.get(NAME))

    return Probe(f"record.{name}", kind, use, prepare=_adopted, **how)


def _status(**how: Any) -> StatusReport:
    return StatusReport("working", **how)


PROBES = [
    _adopt("task_id", "id", lambda v: {"task_id": v}, lambda task: task.id),
    _adopt("agent", "id", lambda v: {"agent": v}, lambda task: str(task.agent)),
    _adopt("owner", "absent_id", lambda v: {"owner": v}, lambda task: task.owner),
    _adopt("metadata", "object", lambda v: {"metadata": v}, lambda task: task.metadata),
    read("record.task_id", "id", lambda s, v: s.record(v, [StatusReport("canceled")])),
    read("delete.task_id", "id", lambda s, v: s.delete(v)),
    _record("state", "text", StatusReport, lambda task: task.state, judge=never),
    _record("note", "text", lambda v: _status(note=v), lambda task: task.note),
    _record("metadata", "object", lambda v: _status(metadata=v), lambda task: task.metadata),
    _record(
        "status.text",
        "text",
        lambda v: _status(message=ChatMessage.assistant([TextBlock(v)])),
        lambda task: task.status_message.text,
    ),
    _record(
        "message.id",
        "id",
        lambda v: ChatMessage.user("hi", id=v),
        lambda task: task.messages[-1].id,
    ),
    _record(
        "artifact_id",
        "id",
        lambda v: ArtifactChunk(v, [TextBlock("x")]),
        lambda task: task.artifacts[-1].id,
    ),
    _record(
        "artifact.text",
        "text",
        lambda v: ArtifactChunk("a1", [TextBlock(v)]),
        lambda task: task.artifacts[0].parts[0].text,
    ),
    _record(
        "artifact.name",
        "text",
        lambda v: ArtifactChunk("a1", [], name=v),
        lambda task: task.artifacts[0].name,
    ),
    _record(
        "artifact.metadata",
        "object",
        lambda v: ArtifactChunk("a1", [], metadata=v),
        lambda task: task.artifacts[0].metadata,
    ),
]
