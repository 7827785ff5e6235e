"""What is too large is refused at the front, and what is stored is read whatever its size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import AgentId, ChatMessage, Document, Entity, Event, Relationship, Settings, State
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.errors import ConfigError, InvalidInputError
from holdfast.items import ItemPut
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import migrated_database
from tests.wiring.kept_states import fresh_state
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = AgentId.parse("writer")
VALUE = TypedBytes("json", b"1")
TINY = Settings(
    max_value_bytes=100,
    max_filter_terms=3,
    max_query_words=4,
    max_walk_depth=2,
    max_walk_entities=10,
    max_connections=4,
)
OFF = Settings(
    max_value_bytes=0,
    max_filter_terms=0,
    max_query_words=0,
    max_walk_depth=0,
    max_walk_entities=0,
    max_connections=4,
)
LARGE = "é" * 50  # 100 bytes as text, more as JSON


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database() -> AsyncIterator[str]:
    async with migrated_database() as url:
        yield url


@pytest_asyncio.fixture(params=["memory", "postgres", "hybrid"], loop_scope="session")
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    url = "memory:" if request.param == "memory" else database
    redis = valkey().url if request.param == "hybrid" else ""
    async with fresh_state(url, redis=redis, settings=TINY) as opened:
        yield opened


WRITES: dict[str, tuple[str, Callable[[State], Awaitable[Any]]]] = {
    "message": (
        "messages[0]",
        lambda state: state.history.append(AGENT, ChatMessage.user(LARGE), session_id="s1"),
    ),
    "event": (
        "events[0]",
        lambda state: state.episodes.append([Event(AGENT, "s1", "note", {"text": LARGE})]),
    ),
    "record": (
        "payload",
        lambda state: state.memory(AGENT, session_id="s1").record("note", {"text": LARGE}),
    ),
    "session": (
        "metadata",
        lambda state: state.episodes.start_session(AGENT, metadata={"x": LARGE}),
    ),
    "state": ("state", lambda state: state.short_term.set_state("s1", {"x": LARGE})),
    "patch": ("patch", lambda state: state.short_term.update_state("s1", {LARGE: 1})),
    "fact": ("content", lambda state: state.long_term.save(AGENT, LARGE + "x")),
    "topic": ("content", lambda state: state.long_term.save(AGENT, "x", topic=LARGE)),
    "source": ("content", lambda state: state.long_term.save(AGENT, "x", source=LARGE)),
    "document": (
        "documents[0]",
        lambda state: state.vectors.add([Document.from_text(LARGE, id="d", embedding=[1.0])]),
    ),
    "entity": (
        "entities[0].properties",
        lambda state: state.graph.add_entities([Entity("X", {"x": LARGE}, "e")]),
    ),
    "relationship": (
        "relationships[0].properties",
        lambda state: state.graph.add_relationships(
            [Relationship("a", "b", "knows", {"x": LARGE}, "r")]
        ),
    ),
    "board": ("task_titles", lambda state: state.boards.create_task_list("c1", [LARGE + "x"])),
    "checkpoint": (
        "checkpoint.labels",
        lambda state: state.checkpoints.put(
            Checkpoint("t1", "", "c1", None, VALUE, VALUE, {"x": LARGE}), new_values={}
        ),
    ),
    "item": (
        "puts[0].value",
        lambda state: state.items.put_many([ItemPut(("a",), "k", {"x": LARGE})]),
    ),
    "channel": ("event", lambda state: state.channel("news").publish({"x": LARGE})),
}


@pytest.mark.parametrize("what", WRITES)
async def test_a_value_that_is_too_large_is_refused_and_nothing_is_written(
    state: State, what: str
) -> None:
    field, write = WRITES[what]
    for view in (state, state.for_owner("ana")):
        with pytest.raises(InvalidInputError, match="HOLDFAST_MAX_VALUE_BYTES") as refused:
            await write(view)
        assert refused.value.field == field
        assert await view.history.count_messages(AGENT, session_id="s1") == 0
        assert await view.episodes.recent(AGENT) == []
        assert await view.short_term.get_state("s1") == {}
        assert await view.long_term.search(AGENT, "") == []
        assert await view.vectors.list_collections() == []
        assert await view.graph.find_entities(["e"]) == []
        assert await view.boards.get_by_conversation("c1") is None
        assert await view.checkpoints.get("t1") is None
        assert await view.items.list_namespaces() == []
        assert await view.channel("news").read() == []


async def test_the_bytes_of_a_value_are_counted_not_its_characters(state: State) -> None:
    await state.long_term.save(AGENT, "x" * 98)
    await state.long_term.save(AGENT, "é" * 49)
    with pytest.raises(InvalidInputError, match="has 102 bytes, and at most 100"):
        await state.long_term.save(AGENT, "é" * 50)


async def test_a_filter_a_question_and_a_walk_are_bounded(state: State) -> None:
    await state.vectors.add([Document.from_text("x", id="d", embedding=[1.0])])
    with pytest.raises(InvalidInputError, match="filter: has 4 conditions, and at most 3"):
        await state.vectors.search([1.0], filter={"a": {"$in": [1, 2, 3]}, "b": 1})
    await state.vectors.search([1.0], filter={"a": {"$in": [1, 2]}, "b": 1})
    for ask in (
        lambda query: state.episodes.recall(AGENT, query),
        lambda query: state.memory(AGENT).recall(query),
        lambda query: state.long_term.search(AGENT, query),
    ):
        with pytest.raises(InvalidInputError, match="query: has 5 different words, and at most 4"):
            await ask("tide wind rain snow fog")
        await ask("tide wind rain tide snow")
    with pytest.raises(InvalidInputError, match="depth: must be at most 2"):
        await state.graph.get_neighbors("a", depth=3)
    with pytest.raises(InvalidInputError, match="limit: must be at most 10"):
        await state.graph.get_neighbors("a", limit=11)


async def test_a_long_text_hydrates_by_its_first_words(state: State) -> None:
    memory = state.memory(AGENT, session_id="s1")
    await memory.record("note", {"text": "tide"})
    await memory.record("note", {"text": "fog"})
    woken = await memory.hydrate("tide wind rain snow fog")
    assert [hit.event.payload for hit in woken.recalled] == [{"text": "tide"}]
    await memory.assemble("tide wind rain snow fog", 1000)


async def test_what_is_stored_is_read_whatever_its_size(database: str) -> None:
    tenant = new_ref()
    async with holdfast.open(
        database, redis=valkey().url, tenant=tenant, settings=OFF
    ) as unlimited:
        for name, (_, write) in WRITES.items():
            if name != "relationship":
                await write(unlimited)
        await unlimited.graph.get_neighbors("e", depth=1000, limit=100_000)
    async with holdfast.open(database, redis=valkey().url, tenant=tenant, settings=TINY) as limited:
        assert await limited.ops.pending_events() == 0
        [message] = await limited.history.get_messages(AGENT, session_id="s1")
        assert message.text == LARGE
        assert len(await limited.episodes.recent(AGENT)) == 3
        assert (await limited.short_term.get_state("s1"))["x"] == LARGE
        facts = {one.content for one in await limited.long_term.search(AGENT, "")}
        assert facts == {LARGE + "x", "x"}
        assert len(await limited.vectors.search([1.0])) == 1
        await limited.short_term.update_state("s1", {"y": 1})


async def test_limits_come_from_the_environment() -> None:
    settings = Settings.from_environment({"HOLDFAST_MAX_VALUE_BYTES": "5"})
    assert settings.limits.value_bytes == 5
    with pytest.raises(ConfigError, match="HOLDFAST_MAX_WALK_DEPTH must be a whole number"):
        Settings.from_environment({"HOLDFAST_MAX_WALK_DEPTH": "-1"})
