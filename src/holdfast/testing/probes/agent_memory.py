"""Hostile input to an ``AgentMemory``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from holdfast.testing.hostile import KEPT, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe, absent
from holdfast.values.content import ChatMessage, TextBlock

CONTRACT = "memory"
START = datetime(2030, 1, 1, tzinfo=UTC)
EVER = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


async def _agent(memory: Any, value: Any) -> Any:
    opened = memory(value, session_id="s1")
    recorded = await opened.record("note", {})
    assert (await opened.recent(1)) == [recorded]
    return str(recorded.agent_id)


async def _own(memory: Any, value: Any) -> Any:
    opened = memory(value)
    await opened.record("note", {})
    await opened.state.update({"of": value})
    assert (await opened.state.get()) == {"of": value}
    return str((await opened.recent(1))[0].agent_id)


async def _session(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id=value)
    await opened.record("note", {})
    await opened.state.update({"of": "session"})
    woken = await opened.hydrate()
    assert woken.state == {"of": "session"}
    return woken.recent[-1].session_id


async def _type(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="types")
    await opened.record(value, {})
    return (await opened.recent(1))[0].type


async def _event_id(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="ids")
    first = await opened.record("note", {}, event_id=value, occurred_at=START)
    if value is None:
        return NO_ECHO
    assert await opened.record("note", {}, event_id=value, occurred_at=START) == first
    return first.id


async def _run(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="runs")
    await opened.record("note", {}, run_id=value)
    return (await opened.recent(1))[0].run_id


async def _payload(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="payloads")
    recorded = await opened.record("note", value)
    [read] = await opened.recent(1)
    assert repr(read) == repr(recorded)
    return read.payload


async def _many(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="many")
    await opened.record_many([("note", value), ("note", {})])
    return (await opened.recent(2))[0].payload


async def _message(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="messages")
    await opened.record("message", ChatMessage.user([TextBlock(value)]))
    return (await opened.recent(1))[0].to_message().text


async def _embedding(memory: Any, value: Any) -> Any:
    await memory("ana", session_id="vectors").record_many([("note", {})], [value])
    return NO_ECHO


async def _prepare_vectors(memory: Any) -> None:
    await memory("ana", session_id="vectors").record_many([("note", {})], [[1.0, 0.0, 0.0]])


async def _recent_types(memory: Any, value: Any) -> Any:
    await memory("ana").recent(types=[value])
    return NO_ECHO


async def _between_types(memory: Any, value: Any) -> Any:
    await memory("ana").between(*EVER, types=[value])
    return NO_ECHO


async def _recall_text(memory: Any, value: Any) -> Any:
    await memory("ana").recall(value)
    return NO_ECHO


async def _recall_types(memory: Any, value: Any) -> Any:
    await memory("ana").recall("x", types=[value])
    return NO_ECHO


async def _recall_session(memory: Any, value: Any) -> Any:
    await memory("ana").recall("x", session_id=value)
    return NO_ECHO


async def _hydrate(memory: Any, value: Any) -> Any:
    await memory("ana", session_id="s1").hydrate(value)
    return NO_ECHO


async def _assemble(memory: Any, value: Any) -> Any:
    opened = memory("ana", session_id="prompts")
    await opened.assemble(value, 100)
    await opened.record("note", {"text": value})
    found = await opened.assemble(value, 10_000_000)
    assert found.tokens <= found.budget_tokens
    return NO_ECHO


async def _state(memory: Any, value: Any) -> Any:
    state = memory("ana", session_id="states").state
    await state.set(value)
    await state.update(value)
    return await state.get()


async def _fact(memory: Any, value: Any) -> Any:
    facts = memory("ana").facts
    return (await facts.get(await facts.save(value))).content


def _none_is_absent(hostile: Hostile) -> Verdict | None:
    """Leaving the parameter out is legal."""
    return KEPT if hostile.value is None else None


def _text_is_words(hostile: Hostile) -> Verdict | None:
    """A text among the vectors is a query by words."""
    return KEPT if isinstance(hostile.value, str) else None


PROBES = (
    Probe("agent_id", "id", _agent),
    Probe("agent_id of no session", "id", _own),
    Probe(
        "session_id",
        "id",
        _session,
        expect=lambda value: "agent:ana" if value is None else value,
        judge=_none_is_absent,
    ),
    Probe("record.type", "id", _type),
    Probe(
        "record.event_id",
        "id",
        _event_id,
        judge=_none_is_absent,
    ),
    Probe("record.run_id", "absent_id", _run, expect=absent),
    Probe("record.payload", "object", _payload),
    Probe("record.payload message", "text", _message),
    Probe("record_many.events", "object", _many),
    Probe("record_many.embeddings", "vector", _embedding, prepare=_prepare_vectors),
    Probe("recent.types", "id", _recent_types),
    Probe("between.types", "id", _between_types),
    Probe("recall.query text", "text", _recall_text),
    Probe(
        "recall.query vector",
        "vector",
        _recall_text,
        prepare=_prepare_vectors,
        judge=_text_is_words,
    ),
    Probe("recall.types", "id", _recall_types),
    Probe("recall.session_id", "id", _recall_session, judge=_none_is_absent),
    Probe("hydrate.query", "text", _hydrate, judge=_none_is_absent),
    Probe("assemble.query", "text", _assemble),
    Probe("state.update", "object", _state),
    Probe("facts.save", "text", _fact),
)
