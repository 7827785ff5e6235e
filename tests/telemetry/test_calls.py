"""One span and one duration for each call of a store, and nothing of its content."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from opentelemetry import trace

import holdfast
from holdfast import AgentId, ChatMessage, Document, Event, Settings, State
from holdfast.errors import ConfigError, ConflictError, InvalidInputError, MissingExtraError
from holdfast.telemetry import Telemetry
from holdfast.telemetry.calls import QUIET
from holdfast.values.ids import new_ref
from holdfast.wiring.telemetry import Tracing, span_ids
from tests.engines.hybrid import valkey
from tests.engines.postgres_database import migrated_database
from tests.telemetry.spans import Kept

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
SECRET = "s3cret-content"  # noqa: S105 - what must not be in a span


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def database() -> AsyncIterator[str]:
    async with migrated_database() as url:
        yield url


@pytest_asyncio.fixture
async def opened(database: str) -> AsyncIterator[tuple[State, Kept]]:
    kept = Kept()
    async with holdfast.open(database, tenant="acme-corp", telemetry=kept.telemetry) as state:
        kept.clear()
        yield state, kept


async def test_a_call_is_one_span_with_its_store_engine_and_round_trips(
    opened: tuple[State, Kept],
) -> None:
    state, kept = opened
    await state.history.append(ANA, ChatMessage.user(SECRET), session_id="s1")
    [span] = await kept.ended()
    assert span.name == "append history"
    assert span.kind is trace.SpanKind.CLIENT
    assert dict(span.attributes) == {
        "db.system.name": "postgresql",
        "db.collection.name": "history",
        "db.operation.name": "append",
        "holdfast.round_trips": 1,
    }
    assert await kept.durations() == [
        {
            "db.system.name": "postgresql",
            "db.collection.name": "history",
            "db.operation.name": "append",
        }
    ]


async def test_every_store_is_traced_and_no_span_has_content_or_the_tenant(
    opened: tuple[State, Kept],
) -> None:
    state, kept = opened
    await state.short_term.set_state(SECRET, {"a": SECRET})
    await state.episodes.append([Event(ANA, SECRET, "note", {"note": SECRET})])
    await state.long_term.save(ANA, SECRET)
    await state.vectors.add([Document.from_text(SECRET, id=SECRET, embedding=[1.0, 0.0])])
    await state.boards.create_task_list(SECRET, [SECRET])
    await state.items.list_namespaces()
    await state.channel(SECRET).publish({"a": SECRET})
    await state.blobs.store(SECRET.encode())
    await state.graph.get_neighbors(SECRET)
    await state.checkpoints.get(SECRET)
    await state.keys.list_keys()
    await state.schedules.list()
    await state.memory(ANA, session_id=SECRET).record("note", {"note": SECRET})
    owned = state.for_owner("ana-owner")
    await owned.tasks.submit("writer", ChatMessage.user(SECRET), submit_key=SECRET)
    await owned.history.get_messages(ANA, session_id=SECRET)
    stores = {dict(span.attributes or {})["db.collection.name"] for span in await kept.ended()}
    assert stores >= {
        *("short_term", "episodes", "long_term", "vectors", "boards", "items", "channel", "blobs"),
        *("graph", "checkpoints", "keys", "schedules", "tasks", "history"),
    }
    shown = " ".join(span.to_json() for span in await kept.ended()) + str(await kept.durations())
    for hidden in (SECRET, "acme-corp", "ana-owner"):
        assert hidden not in shown


async def test_the_tenant_is_named_only_if_it_is_asked_for() -> None:
    kept = Kept(show_tenant=True)
    async with holdfast.open("memory:", tenant="acme", telemetry=kept.telemetry) as state:
        await state.short_term.get_state("s1")
        await state.for_tenant("globex").short_term.get_state("s1")
    assert [span.attributes["db.namespace"] for span in await kept.ended()] == ["acme", "globex"]
    assert "db.namespace" not in str(await kept.durations())


async def test_a_failed_call_has_the_class_of_its_error_and_not_its_text(
    opened: tuple[State, Kept],
) -> None:
    state, kept = opened
    await state.tasks.submit("writer", ChatMessage.user("a"), submit_key=SECRET)
    with pytest.raises(ConflictError):
        await state.tasks.submit("writer", ChatMessage.user("b"), submit_key=SECRET)
    span = (await kept.ended())[-1]
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.attributes["error.type"] == "ConflictError"
    assert SECRET not in span.to_json()
    assert {"error.type": "ConflictError"}.items() <= (await kept.durations())[-1].items()


async def test_a_call_within_a_span_is_its_child(opened: tuple[State, Kept]) -> None:
    state, kept = opened
    with kept.tracer.start_as_current_span("agent") as outer:
        await state.short_term.get_state("s1")
    [inner] = [one for one in await kept.ended() if one.name == "get_state short_term"]
    assert inner.parent.span_id == outer.get_span_context().span_id


async def test_what_workers_call_again_and_again_has_a_duration_and_no_span(
    opened: tuple[State, Kept],
) -> None:
    state, kept = opened
    assert await state.for_tenant("nobody").tasks.claim("w1") == []
    await state.tasks.recover_expired()
    assert await kept.ended() == []
    assert {one["db.operation.name"] for one in await kept.durations()} == {
        "claim",
        "recover_expired",
    }


async def test_a_traced_store_is_of_its_class_and_takes_the_same_arguments(
    opened: tuple[State, Kept],
) -> None:
    state, _ = opened
    async with holdfast.open("memory:") as plain:
        for name in ("history", "tasks", "episodes", "long_term"):
            assert isinstance(getattr(state, name), type(getattr(plain, name)))
    with pytest.raises(InvalidInputError, match="session_id"):
        await state.history.append(ANA, ChatMessage.user("x"), session_id="")


async def test_wrong_telemetry_and_a_missing_package_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong: Any = True
    with pytest.raises(InvalidInputError, match="telemetry"):
        holdfast.open("memory:", telemetry=wrong)
    with pytest.raises(ConfigError, match="HOLDFAST_OTEL=1"):
        holdfast.open("memory:", settings=Settings(otel_tenant=True))
    for name in [name for name in sys.modules if name.startswith("holdfast.telemetry.")]:
        if not name.endswith("options"):
            monkeypatch.delitem(sys.modules, name)
    for module in ("calls", "http", "runs"):
        monkeypatch.delattr(holdfast.telemetry, module, raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"holdfast\[otel\]"):
        Tracing(Telemetry())
    with pytest.raises(MissingExtraError, match=r"holdfast\[otel\]"):
        span_ids()


def _methods(state: State) -> set[str]:
    stores = [getattr(state, name) for name in ("tasks", "schedules")]
    return {name for store in stores for name in dir(store)}


async def test_what_has_no_span_is_a_method_that_exists(opened: tuple[State, Kept]) -> None:
    state, _ = opened
    assert _methods(state) >= QUIET


async def test_both_engines_of_a_hybrid_are_traced(database: str) -> None:
    kept = Kept()
    async with holdfast.open(
        database, redis=valkey().url, tenant=new_ref(), telemetry=kept.telemetry
    ) as state:
        memory = state.memory(ANA, session_id="s1")
        await memory.record("note", {"note": SECRET})
        await state.short_term.set_state("s1", {"a": 1})
        await memory.hydrate("note")
        shown = " ".join(span.to_json() for span in await kept.ended())
    systems = {span.attributes["db.system.name"] for span in kept.spans}
    assert "hybrid" in systems
    recorded = [one for one in kept.spans if one.name.startswith("append")]
    assert recorded
    assert all(one.attributes["holdfast.round_trips"] > 0 for one in recorded)
    assert SECRET not in shown


async def test_round_trips_and_connections_of_redis_are_counted() -> None:
    kept = Kept()
    async with holdfast.open(valkey().url, tenant=new_ref(), telemetry=kept.telemetry) as state:
        kept.clear()
        await state.short_term.set_state("s1", {"a": 1})
        await state.short_term.get_state("s1")
        spans = await kept.ended()
        assert [span.attributes["holdfast.round_trips"] for span in spans] == [1, 1]
        [use] = state.ops.pools().values()
        assert (use.size > 0, use.in_use, use.waiting) == (True, 0, 0)


async def test_the_variable_turns_it_on() -> None:
    async with holdfast.open("memory:", settings=Settings(otel=True)) as state:
        assert state.tracing is not None
        # Without an SDK there is no span, and so no trace to store with a task.
        task = await state.tasks.submit("writer", ChatMessage.user("x"))
        assert (task.traceparent, task.metadata) == ("", {})
