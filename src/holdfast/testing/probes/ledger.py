"""Hostile input to a ``TaskLedger``.

A probe finds one task in the state that ``prepare`` left it in. Where a kept value moves the task
on, it is brought back afterwards: so a refused value meets a store in which nothing is written
before the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Kind, Probe, absent
from holdfast.values.content import ChatMessage, DataBlock, TextBlock
from holdfast.values.errors import LeaseLostError, NotFoundError
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import Lease
from holdfast.values.tasks.reports import StatusReport

CONTRACT = "tasks"
HELLO = ChatMessage.user("hello")
URL = "https://example.org"


async def _queued(store: Any) -> Any:
    return await store.submit("writer", ChatMessage.user("hello"))


async def working(store: Any) -> Lease:
    """A task at work; the queued one, if there is one."""
    if not (await store.list(states=["submitted"])).tasks:
        await _queued(store)
    [claimed] = await store.claim("w1")
    lease: Lease = claimed.lease
    return lease


async def _waiting(store: Any) -> None:
    await store.transition(await working(store), "input-required")


async def _paused(store: Any) -> None:
    await store.pause((await _queued(store)).id)


async def _canceled(store: Any) -> None:
    await store.cancel((await _queued(store)).id)


async def _the(store: Any, state: str) -> Any:
    [task] = (await store.list(states=[state], limit=1)).tasks
    return task


async def lease_of(store: Any) -> Lease:
    """The lease on the task at work."""
    task = await _the(store, "working")
    return Lease(task.id, task.fence, task.worker, task.lease_expires_at)


def _submit(
    name: str, kind: Kind, given: Callable[[Any], dict[str, Any]], seen: Callable[[Any], Any]
) -> Probe:
    async def use(store: Any, value: Any) -> Any:
        how = given(value)
        agent, message = how.pop("agent", "writer"), how.pop("message", HELLO)
        task = await store.submit(agent, message, **how)
        return seen(await store.get(task.id, owner=None))

    expect = absent if kind == "absent_id" else lambda value: value
    return Probe(f"submit.{name}", kind, use, expect=expect)


def work(
    name: str, kind: Kind, call: Callable[[Any, Lease, Any], Awaitable[Any]], **extra: Any
) -> Probe:
    """A probe of what is done to the task at work."""

    async def use(store: Any, value: Any) -> Any:
        return await call(store, await lease_of(store), value)

    return Probe(name, kind, use, prepare=working, **extra)


def read(name: str, kind: Kind, call: Callable[[Any, Any], Awaitable[Any]], **extra: Any) -> Probe:
    """A probe with what is not there: only a refusal matters."""

    async def use(store: Any, value: Any) -> Any:
        with suppress(NotFoundError, LeaseLostError):
            await call(store, value)
        return NO_ECHO

    return Probe(name, kind, use, **extra)


OWNED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("get", "cancel", "pause", "resume", "retry"), ()),
    **dict.fromkeys(("events", "follow", "artifacts", "list_feedback"), ()),
    **dict.fromkeys(("list_push_configs", "list_outbox"), ()),
    "respond": (HELLO,),
    "replay": (1,),
    "append_feedback": ("good",),
    "get_artifact": ("a1",),
    "get_push_config": ("p1",),
    "delete_push_config": ("p1",),
    "upsert_push_config": (PushConfig("p1", URL),),
    "record": ([StatusReport("canceled")],),
    "delete": (),
}
"""The methods that take an owner, with what they take after the task's id."""


def _owner(method: str, *given: Any) -> Probe:
    async def call(store: Any, value: Any) -> Any:
        found = getattr(store, method)("no such task", *given, owner=value)
        return await (anext(found) if method == "follow" else found)

    return read(f"{method}.owner", "optional_id", call, judge=_none_is_legal)


def _nothing(_stored: Any) -> Any:
    return NO_ECHO


def _none_is_legal(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


def _only_none(hostile: Hostile) -> Verdict:
    return KEPT if hostile.value is None else REFUSED


def never(_hostile: Hostile) -> Verdict:
    """Nothing of the corpus is right here."""
    return REFUSED


async def _respond(store: Any, value: Any) -> Any:
    task = await _the(store, "input-required")
    await store.respond(task.id, ChatMessage.user([TextBlock(value)]))
    answer = (await store.get(task.id)).messages[-1].text
    await _waiting(store)
    return answer


async def _cancel(store: Any, value: Any) -> Any:
    note = (await store.cancel((await _the(store, "submitted")).id, note=value)).note
    await _queued(store)
    return note


async def _pause(store: Any, value: Any) -> Any:
    task = await store.pause((await _the(store, "submitted")).id, note=value)
    await store.resume(task.id)
    return task.note


async def _resume(store: Any, value: Any) -> Any:
    task = await store.resume((await _the(store, "paused")).id, note=value)
    await store.pause(task.id)
    return task.note


async def _retry(store: Any, value: Any) -> Any:
    return (await store.retry((await _the(store, "canceled")).id, submit_key=value)).submit_key


async def _claim(store: Any, value: Any) -> Any:
    [claimed] = await store.claim(value)
    await store.release(claimed.lease)
    return claimed.lease.worker


async def _feedback(store: Any, lease: Lease, text: Any = "good", **how: Any) -> Any:
    await store.append_feedback(lease.task_id, text, **how)
    return (await store.list_feedback(lease.task_id))[-1]


async def _feedback_text(store: Any, lease: Lease, value: Any) -> Any:
    return (await _feedback(store, lease, value)).text


async def _feedback_metadata(store: Any, lease: Lease, value: Any) -> Any:
    return (await _feedback(store, lease, metadata=value)).metadata


async def _feedback_id(store: Any, lease: Lease, value: Any) -> Any:
    given = (await _feedback(store, lease, feedback_id=value)).id
    return given if value else value


async def _context(store: Any, value: Any) -> Any:
    assert await store.get_context(value) is None
    await store.submit("writer", HELLO, session_id=value)
    found = (await store.get_context(value)).id
    await store.clear_context(value)
    return found


async def _followed(store: Any, value: Any) -> Any:
    return await anext(store.follow(value))


PROBES = [
    _submit("agent", "id", lambda v: {"agent": v}, lambda task: str(task.agent)),
    _submit("session_id", "absent_id", lambda v: {"session_id": v}, _nothing),
    _submit("owner", "absent_id", lambda v: {"owner": v}, lambda task: task.owner),
    _submit("submit_key", "absent_id", lambda v: {"submit_key": v}, lambda task: task.submit_key),
    _submit("key", "absent_id", lambda v: {"key": v}, lambda task: task.key),
    _submit("metadata", "object", lambda v: {"metadata": v}, lambda task: task.metadata),
    _submit(
        "message.id",
        "id",
        lambda v: {"message": ChatMessage.user("hi", id=v)},
        lambda task: task.messages[0].id,
    ),
    _submit(
        "message.text",
        "text",
        lambda v: {"message": ChatMessage.user([TextBlock(v)])},
        lambda task: task.messages[0].text,
    ),
    _submit(
        "message.name",
        "text",
        lambda v: {"message": ChatMessage.user("hi", name=v)},
        lambda task: task.messages[0].name,
    ),
    _submit(
        "message.data",
        "json",
        lambda v: {"message": ChatMessage.user([DataBlock(v)])},
        lambda task: task.messages[0].content[0].data,
    ),
    _submit(
        "message.metadata",
        "object",
        lambda v: {"message": ChatMessage.user("hi", metadata=v)},
        lambda task: task.messages[0].metadata,
    ),
    _submit(
        "push.token",
        "text",
        lambda v: {"push": [PushConfig("p1", URL, v)]},
        _nothing,
    ),
    read(
        "submit.retry_of",
        "absent_id",
        lambda store, v: store.submit("writer", HELLO, retry_of=v),
    ),
    read("get.task_id", "id", lambda store, v: store.get(v)),
    read("list.owner", "optional_id", lambda s, v: s.list(owner=v), judge=_none_is_legal),
    read("list.session_id", "id", lambda s, v: s.list(session_id=v), judge=_none_is_legal),
    read("list.agent", "id", lambda s, v: s.list(agent=v), judge=_none_is_legal),
    read("list.states", "text", lambda s, v: s.list(states=[v]), judge=never),
    read("list.cursor", "text", lambda s, v: s.list(cursor=v), judge=_only_none),
    read("respond.task_id", "id", lambda s, v: s.respond(v, HELLO)),
    Probe("respond.message.text", "text", _respond, prepare=_waiting),
    read("cancel.task_id", "id", lambda s, v: s.cancel(v)),
    Probe("cancel.note", "text", _cancel, prepare=_queued),
    read("pause.task_id", "id", lambda s, v: s.pause(v)),
    Probe("pause.note", "text", _pause, prepare=_queued),
    read("resume.task_id", "id", lambda s, v: s.resume(v)),
    Probe("resume.note", "text", _resume, prepare=_paused),
    read("retry.task_id", "id", lambda s, v: s.retry(v)),
    Probe("retry.submit_key", "absent_id", _retry, prepare=_canceled, expect=absent),
    Probe("claim.worker", "id", _claim, prepare=_queued),
    read("claim.agents", "id", lambda s, v: s.claim("w1", agents=[v])),
    read("events.task_id", "id", lambda s, v: s.events(v)),
    read("follow.task_id", "id", _followed),
    read("replay.task_id", "id", lambda s, v: s.replay(v, 1)),
    read("append_feedback.task_id", "id", lambda s, v: s.append_feedback(v, "good")),
    work("append_feedback.text", "text", _feedback_text),
    work("append_feedback.metadata", "object", _feedback_metadata),
    work("append_feedback.feedback_id", "absent_id", _feedback_id),
    read("list_feedback.task_id", "id", lambda s, v: s.list_feedback(v)),
    *(_owner(method, *given) for method, given in OWNED.items()),
    Probe("get_context.session_id", "id", _context),
    read("get_context.owner", "absent_id", lambda s, v: s.get_context("c1", owner=v)),
    read("clear_context.session_id", "id", lambda s, v: s.clear_context(v)),
    read("clear_context.owner", "absent_id", lambda s, v: s.clear_context("c1", owner=v)),
    read(
        "list_contexts.owner",
        "optional_id",
        lambda s, v: s.list_contexts(owner=v),
        judge=_none_is_legal,
    ),
    read("list_contexts.cursor", "text", lambda s, v: s.list_contexts(cursor=v), judge=_only_none),
]
