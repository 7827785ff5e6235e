"""Hostile input to an ``EpisodicMemory``."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.values.events import Event
from holdfast.values.filters import escape
from holdfast.values.identity import ALL_AGENTS, AgentId
from holdfast.values.payload_filters import MAX_TEXT_BYTES
from holdfast.values.states import StatePatch

CONTRACT = "episodes"
ANA = AgentId("", "ana")
FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


async def _append(store: Any, event: Event) -> Event:
    [stored] = await store.append([event])
    [read] = await store.recent(event.agent_id, session_id=event.session_id, limit=1)
    assert read == stored
    assert isinstance(read, Event)
    return read


async def _agent(store: Any, value: Any) -> Any:
    return str((await _append(store, Event(value, "s1", "observation", {}))).agent_id)


async def _session(store: Any, value: Any) -> Any:
    return (await _append(store, Event(ANA, value, "observation", {}))).session_id


async def _type(store: Any, value: Any) -> Any:
    return (await _append(store, Event(ANA, "s1", value, {}))).type


async def _id(store: Any, value: Any) -> Any:
    return (await _append(store, Event(ANA, "s1", "observation", {}, id=value))).id


async def _run(store: Any, value: Any) -> Any:
    return (await _append(store, Event(ANA, "s1", "observation", {}, run_id=value))).run_id


async def _payload(store: Any, value: Any) -> Any:
    return (await _append(store, Event(ANA, "s1", "observation", value))).payload


async def _embedding(store: Any, value: Any) -> Any:
    await store.append([Event(ANA, "s1", "observation", {})], embeddings=[value])
    return NO_ECHO


async def _prepare_vectors(store: Any) -> None:
    await store.append([Event(ANA, "s1", "observation", {})], embeddings=[[1.0, 0.0, 0.0]])


async def _recall_vector(store: Any, value: Any) -> Any:
    # Text is a legal query by words: the corpus's one text is judged so below.
    await store.recall(ANA, value)
    return NO_ECHO


async def _recall_text(store: Any, value: Any) -> Any:
    if isinstance(value, str):
        await store.append([Event(ANA, "words", "observation", {"note": value})])
    await store.recall(ANA, value)
    return NO_ECHO


async def _recall_session(store: Any, value: Any) -> Any:
    await store.recall(ANA, "x", session_id=value)
    return NO_ECHO


async def _recent_type(store: Any, value: Any) -> Any:
    await store.recent(ANA, types=[value])
    return NO_ECHO


async def _where_key(store: Any, value: Any) -> Any:
    if not isinstance(value, str):
        await store.recent(ANA, where={"$and": value})
    await store.append([Event(ANA, "keyed", "observation", {value: 1})])
    [found] = await store.recent(ANA, session_id="keyed", limit=1, where={escape(value): 1})
    return next(iter(found.payload))


async def _where_value(store: Any, value: Any) -> Any:
    await store.between(ANA, *EVER, where={"k": {"$eq": value}})
    await store.append([Event(ANA, "valued", "observation", {"k": value})])
    [found] = await store.recent(ANA, session_id="valued", limit=1, where={"k": {"$eq": value}})
    return found.payload["k"]


async def _where_bound(store: Any, value: Any) -> Any:
    await store.recall(ALL_AGENTS, "x", where={"$not": {"k": {"$gt": value}}})
    return NO_ECHO


async def _start(store: Any, value: Any) -> Any:
    session = await store.start_session(ANA, value)
    return NO_ECHO if value is None else (await store.get_session(session.id)).id


async def _session_metadata(store: Any, value: Any) -> Any:
    await store.start_session(ANA, "s1", metadata=value)
    return (await store.get_session("s1")).metadata


async def _session_subject(store: Any, value: Any) -> Any:
    session = await store.start_session(ANA, subject=value)
    return NO_ECHO if value is None else (await store.get_session(session.id)).subject


async def _delete_events(store: Any, value: Any) -> Any:
    await store.delete_events(value, ["e1"])
    return NO_ECHO


async def _delete_events_ids(store: Any, value: Any) -> Any:
    await store.delete_events("s1", [value])
    return NO_ECHO


async def _clear(store: Any, value: Any) -> Any:
    await store.clear(value)
    return NO_ECHO


async def _get_session(store: Any, value: Any) -> Any:
    await store.get(value, ["e1"])
    return NO_ECHO


async def _get_id(store: Any, value: Any) -> Any:
    await store.append([Event(ANA, "got", "note", {}, id=value)])
    return [one.id for one in await store.get("got", [value])]


async def _delete(store: Any, value: Any) -> Any:
    await store.delete_session(value)
    return NO_ECHO


async def _fork_of(store: Any, value: Any) -> Any:
    with suppress(NotFoundError):
        await store.fork(value, "fork")
    return NO_ECHO


async def _prepare_fork(store: Any) -> None:
    await store.append([Event(ANA, "to fork", "observation", {})])


async def _fork_into(store: Any, value: Any) -> Any:
    return (await store.fork("to fork", value)).id


async def _active_cursor(store: Any, value: Any) -> Any:
    await store.list_sessions(ALL_AGENTS, cursor=value, by="last_active_at")
    return NO_ECHO


async def _sessions_where(store: Any, value: Any) -> Any:
    await store.list_sessions(ANA, where={"k": {"$eq": value}})
    return NO_ECHO


async def _patched_session(store: Any, value: Any) -> Any:
    with suppress(NotSupportedError):
        await store.append([], patches=[StatePatch(value, {})])
    return NO_ECHO


async def _clear_run(store: Any, value: Any) -> Any:
    await store.clear("s1", run_id=value)
    return NO_ECHO


async def _between_cursor(store: Any, value: Any) -> Any:
    await store.between(ANA, FIRST, LAST, cursor=value)
    return NO_ECHO


async def _sessions_cursor(store: Any, value: Any) -> Any:
    await store.list_sessions(ANA, cursor=value)
    return NO_ECHO


def _only_none(hostile: Hostile) -> Verdict | None:
    """No text of the corpus is a cursor."""
    return KEPT if hostile.value is None else REFUSED


def _none_is_all(hostile: Hostile) -> Verdict | None:
    """Leaving the parameter out is legal."""
    return KEPT if hostile.value is None else None


def _no_scalar(hostile: Hostile) -> Verdict | None:
    value = hostile.value
    if isinstance(value, str) and hostile.verdict is KEPT and len(value.encode()) > MAX_TEXT_BYTES:
        return REFUSED
    return REFUSED if isinstance(value, (list, dict)) else None


def _no_bound(hostile: Hostile) -> Verdict | None:
    if hostile.value is None or isinstance(hostile.value, bool):
        return REFUSED
    return _no_scalar(hostile)


async def _after(store: Any, value: Any) -> Any:
    assert await store.list_agents(after=value) == []
    return NO_ECHO


def _keep_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


PROBES = (
    Probe("list_agents.after", "id", _after, judge=_keep_none),
    Probe("append.agent_id", "id", _agent),
    Probe("append.session_id", "id", _session),
    Probe("append.type", "id", _type),
    Probe("append.id", "id", _id),
    Probe("append.run_id", "optional_id", _run),
    Probe("append.payload", "object", _payload),
    Probe("append.embeddings", "vector", _embedding, prepare=_prepare_vectors),
    Probe(
        "recall.query vector",
        "vector",
        _recall_vector,
        prepare=_prepare_vectors,
        judge=lambda hostile: KEPT if isinstance(hostile.value, str) else None,
    ),
    Probe("recall.query text", "text", _recall_text),
    Probe("recall.session_id", "id", _recall_session, judge=_none_is_all),
    Probe("recent.types", "id", _recent_type),
    Probe("between.cursor", "text", _between_cursor, judge=_only_none),
    Probe("list_sessions.cursor", "text", _sessions_cursor, judge=_only_none),
    Probe("list_sessions.cursor by activity", "text", _active_cursor, judge=_only_none),
    Probe("list_sessions.where, a value", "json", _sessions_where, judge=_no_scalar),
    Probe("get.session_id", "id", _get_session),
    Probe("get.ids", "id", _get_id, expect=lambda value: [value]),
    Probe("delete_session.session_id", "id", _delete),
    Probe("fork.session_id", "id", _fork_of),
    Probe("fork.into", "id", _fork_into, prepare=_prepare_fork),
    Probe("append.patches.session_id", "id", _patched_session),
    Probe("recent.where, a key", "text", _where_key),
    Probe("recent.where, a value", "json", _where_value, judge=_no_scalar),
    Probe("recall.where, a bound", "json", _where_bound, judge=_no_bound),
    Probe("start_session.session_id", "id", _start, judge=_none_is_all),
    Probe("start_session.metadata", "object", _session_metadata),
    Probe("start_session.subject", "id", _session_subject, judge=_none_is_all),
    Probe("delete_events.session_id", "id", _delete_events),
    Probe("delete_events.ids", "id", _delete_events_ids),
    Probe("clear.session_id", "id", _clear),
    Probe("clear.run_id", "id", _clear_run, judge=_none_is_all),
)
