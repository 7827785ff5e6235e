"""Hostile input to a ``TaskLedger``: what workers write, and push configs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.testing.hostile import REFUSED, Hostile, Verdict
from holdfast.testing.probes.ledger import (
    HELLO,
    URL,
    never,
    read,
    work,
    working,
)
from holdfast.testing.probes.probe import Kind, Probe
from holdfast.values.content import ChatMessage, DataBlock, TextBlock
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"


async def _announced(store: Any) -> None:
    await store.submit("writer", HELLO, push=[PushConfig("p1", URL)])


def _push(
    name: str,
    kind: Kind,
    config: Callable[[Any], PushConfig],
    seen: Callable[[Any], Any],
    **extra: Any,
) -> Probe:
    async def call(store: Any, lease: Lease, value: Any) -> Any:
        given = config(value)
        await store.upsert_push_config(lease.task_id, given)
        return seen(await store.get_push_config(lease.task_id, given.id))

    return work(f"upsert_push_config.{name}", kind, call, **extra)


def _not_empty(hostile: Hostile) -> Verdict | None:
    return REFUSED if hostile.value == "" else None


async def _transition(store: Any, lease: Lease, value: Any) -> Any:
    note = (await store.transition(lease, "submitted", note=value, progress=True)).note
    await working(store)
    return note


async def _transition_message(store: Any, lease: Lease, value: Any) -> Any:
    message = ChatMessage.assistant([DataBlock(value)])
    task = await store.transition(lease, "submitted", message=message, progress=True)
    await working(store)
    return task.status_message.content[0].data


async def _ask(store: Any, lease: Lease, value: Any) -> Any:
    await store.transition(lease, "input-required", ask=StepKey(value, kind="ask"))
    await store.respond(lease.task_id, ChatMessage.user("this"))
    await working(store)
    return (await store.steps(lease.task_id))[-1].key.name


async def _release(store: Any, lease: Lease, value: Any) -> Any:
    note = (await store.release(lease, note=value)).note
    await working(store)
    return note


async def _say(store: Any, lease: Lease, value: Any) -> Any:
    await store.append_message(lease, ChatMessage.assistant([TextBlock(value)]))
    return (await store.get(lease.task_id)).messages[-1].text


async def _say_as(store: Any, lease: Lease, value: Any) -> Any:
    await store.append_message(lease, ChatMessage.assistant("hi"), step=StepKey("s", kind=value))
    return (await store.steps(lease.task_id))[-1].key.kind


async def _step(store: Any, lease: Lease, key: StepKey, result: Any = 1, **how: Any) -> Any:
    await store.record_step(lease, key, result, **how)
    return (await store.steps(lease.task_id))[-1]


async def _new_key(store: Any, lease: Lease) -> StepKey:
    return StepKey("s", len(await store.steps(lease.task_id)) + 1)


async def _step_name(store: Any, lease: Lease, value: Any) -> Any:
    return (await _step(store, lease, StepKey(value))).key.name


async def _step_result(store: Any, lease: Lease, value: Any) -> Any:
    return (await _step(store, lease, await _new_key(store, lease), value)).result


async def _step_digest(store: Any, lease: Lease, value: Any) -> Any:
    return (await _step(store, lease, await _new_key(store, lease), digest=value)).digest


async def _artifact(store: Any, lease: Lease, **how: Any) -> Any:
    key, parts = how.pop("key", "a1"), how.pop("parts", [])
    await store.append_artifact(lease, key, parts, **how)
    return await store.get_artifact(lease.task_id, key)


async def _artifact_id(store: Any, lease: Lease, value: Any) -> Any:
    return (await _artifact(store, lease, key=value)).id


async def _artifact_text(store: Any, lease: Lease, value: Any) -> Any:
    return (await _artifact(store, lease, parts=[TextBlock(value)])).parts[0].text


async def _artifact_data(store: Any, lease: Lease, value: Any) -> Any:
    return (await _artifact(store, lease, parts=[DataBlock(value)])).parts[0].data


async def _artifact_name(store: Any, lease: Lease, value: Any) -> Any:
    return (await _artifact(store, lease, name=value)).name


async def _artifact_metadata(store: Any, lease: Lease, value: Any) -> Any:
    return (await _artifact(store, lease, metadata=value)).metadata


async def _failed(store: Any, value: Any) -> Any:
    [task] = (await store.list()).tasks
    entry = (await store.list_outbox(task.id))[0]
    await store.mark_failed(entry, value, max_attempts=10**6)
    return (await store.list_outbox(task.id))[0].last_error


async def _marked(store: Any, lease: Lease, **how: Any) -> Any:
    await store.add_cleanup(lease, "run", how.get("ref", "r"), agent=how.get("agent", ""))
    await store.transition(lease, "completed")
    [mark] = await store.list_cleanup(lease.task_id)
    await working(store)
    return mark


async def _marked_ref(store: Any, lease: Lease, value: Any) -> Any:
    return (await _marked(store, lease, ref=value)).ref


async def _marked_agent(store: Any, lease: Lease, value: Any) -> Any:
    return (await _marked(store, lease, agent=value)).agent


def ghost(value: Any) -> Lease:
    return Lease(value, 1, "w1", HELLO.created_at)


PROBES = [
    read("heartbeat.lease.task_id", "id", lambda s, v: s.heartbeat(ghost(v))),
    work("transition.to", "text", lambda s, lease, v: s.transition(lease, v), judge=never),
    work("transition.note", "text", _transition),
    work("transition.message.data", "json", _transition_message),
    work("transition.ask.name", "id", _ask),
    work("release.note", "text", _release),
    work("append_message.message.text", "text", _say),
    work("append_message.step.kind", "id", _say_as),
    work("record_step.key.name", "id", _step_name),
    work("record_step.result", "json", _step_result),
    work("record_step.digest", "text", _step_digest),
    read("steps.task_id", "id", lambda s, v: s.steps(v)),
    work("append_artifact.artifact_id", "id", _artifact_id),
    work("append_artifact.parts.text", "text", _artifact_text),
    work("append_artifact.parts.data", "json", _artifact_data),
    work("append_artifact.name", "text", _artifact_name),
    work("append_artifact.metadata", "object", _artifact_metadata),
    read("restore_artifacts.step", "id", lambda s, v: s.restore_artifacts(ghost("t"), StepKey(v))),
    read("artifacts.task_id", "id", lambda s, v: s.artifacts(v)),
    read("get_artifact.task_id", "id", lambda s, v: s.get_artifact(v, "a1")),
    read("get_artifact.artifact_id", "id", lambda s, v: s.get_artifact("t", v)),
    _push("id", "id", lambda v: PushConfig(v, URL), lambda config: config.id),
    _push(
        "url", "text", lambda v: PushConfig("p1", v), lambda config: config.url, judge=_not_empty
    ),
    _push("token", "text", lambda v: PushConfig("p1", URL, v), lambda config: config.token),
    _push(
        "authentication",
        "object",
        lambda v: PushConfig("p1", URL, authentication=v),
        lambda config: config.authentication,
    ),
    read(
        "upsert_push_config.task_id",
        "id",
        lambda s, v: s.upsert_push_config(v, PushConfig("p", URL)),
    ),
    read("get_push_config.task_id", "id", lambda s, v: s.get_push_config(v, "p1")),
    read("get_push_config.config_id", "id", lambda s, v: s.get_push_config("t", v)),
    read("list_push_configs.task_id", "id", lambda s, v: s.list_push_configs(v)),
    read("delete_push_config.task_id", "id", lambda s, v: s.delete_push_config(v, "p1")),
    read("delete_push_config.config_id", "id", lambda s, v: s.delete_push_config("t", v)),
    Probe("mark_failed.error", "text", _failed, prepare=_announced),
    work("add_cleanup.ref", "id", _marked_ref),
    work("add_cleanup.agent", "optional_id", _marked_agent),
    work("add_cleanup.kind", "text", lambda s, lease, v: s.add_cleanup(lease, v, "r"), judge=never),
    read("list_cleanup.task_id", "id", lambda s, v: s.list_cleanup(v)),
    read("list_context_cleanup.session_id", "id", lambda s, v: s.list_context_cleanup(v)),
    read(
        "list_context_cleanup.owner",
        "absent_id",
        lambda s, v: s.list_context_cleanup("c1", owner=v),
    ),
    read("keep_files.task_id", "id", lambda s, v: s.keep_files(v, ["b1"])),
    read("keep_files.refs", "id", lambda s, v: s.keep_files("t", [v])),
    read("list_outbox.task_id", "id", lambda s, v: s.list_outbox(v)),
]
