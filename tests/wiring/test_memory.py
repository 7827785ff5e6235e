"""``State.memory()`` on its wirings, and the embedder in the background."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

import holdfast
from holdfast import AgentMemory, Document, Settings
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.errors import TimedOutError, UnavailableError
from holdfast.memory import WakeStatus
from holdfast.testing.embedders import FlakyEmbedder, HangingEmbedder
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

MIGRATED = Settings(auto_migrate=True)


async def test_a_memory_is_one_agents_in_one_tenant() -> None:
    async with holdfast.open("memory:") as state:
        memory = state.memory("planner/a1", session_id="s1")
        assert isinstance(memory, AgentMemory)
        assert "planner/a1 in s1" in repr(memory)
        await memory.record("decision", {"use": "postgres"})
        other = state.for_tenant("acme").memory("planner/a1", session_id="s1")
        assert (await other.hydrate("postgres")).status is WakeStatus.NEW
        assert [hit.event.payload for hit in await memory.recall("postgres")] == [
            {"use": "postgres"}
        ]
        assert await state.ops.embed_pending() == 0


async def test_a_message_that_is_none_is_refused_with_what_to_pass() -> None:
    async with holdfast.open("memory:") as state:
        memory = state.memory("planner/a1", session_id="s1")
        with pytest.raises(holdfast.errors.InvalidInputError, match="pass a ChatMessage"):
            await memory.record("message", {"text": "hello"})


async def test_a_closed_state_refuses_a_new_memory() -> None:
    state = await holdfast.open("memory:")
    await state.aclose()
    with pytest.raises(holdfast.errors.ConfigError, match="closed"):
        state.memory("a1")


async def test_the_background_embeds_what_was_recorded_and_ends_with_the_state() -> None:
    embedder = FlakyEmbedder(8)
    async with empty_database() as url:
        async with holdfast.open(url, embedder=embedder, settings=MIGRATED) as state:
            memory = state.memory("a1", session_id="s1")
            await memory.record_many([("note", {"note": f"tide {at}"}) for at in range(100)])
            limit = time.monotonic() + 60
            while (await memory.recall("tide 7", 1))[0].found_by != ("lexical", "semantic"):
                assert time.monotonic() < limit
                await asyncio.sleep(0.02)
            assert len(embedder.embedded) >= 100
        assert [one for one in asyncio.all_tasks() if "follow" in str(one.get_coro())] == []


async def test_without_the_background_what_waits_is_embedded_on_demand() -> None:
    embedder = FlakyEmbedder(8, down=True)
    async with (
        empty_database() as url,
        holdfast.open(url, embedder=embedder, settings=MIGRATED, background=False) as state,
    ):
        memory = state.memory("a1", session_id="s1")
        await memory.record_many([("note", {"note": f"tide {at}"}) for at in range(50)])
        with pytest.raises(UnavailableError, match="the model is down"):
            await state.ops.embed_pending()
        embedder.down = False
        assert await state.ops.embed_pending() == 50
        assert await state.ops.embed_pending() == 0


async def test_another_embedder_takes_over_when_the_state_is_opened_with_it() -> None:
    async with empty_database() as url:
        for count, dimension in enumerate((8, 16), start=1):
            embedder = HashEmbedder(dimension)
            async with holdfast.open(
                url, embedder=embedder, settings=MIGRATED, background=False
            ) as state:
                memory = state.memory("a1", session_id="s1")
                await memory.record("note", {"note": f"tide {dimension}"})
                await state.ops.embed_pending()
                hits = await memory.recall("tide", 5)
                assert len(hits) == count
                assert {hit.found_by for hit in hits} == {("lexical", "semantic")}
                assert {hit.degraded for hit in hits} == {""}


@pytest.mark.parametrize("engine", ["memory", "postgres"])
async def test_an_embedder_that_never_answers_leaves_recall_to_the_words(engine: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        url = "memory:"
        if engine == "postgres":
            url = await stack.enter_async_context(empty_database())
        state = await stack.enter_async_context(
            holdfast.open(url, embedder=HangingEmbedder(), settings=MIGRATED, background=False)
        )
        memory = state.memory("planner/a1", session_id="s1")
        await memory.record("decision", {"use": "postgres"})
        await memory.facts.save("Bo sails")
        [hit] = await memory.recall("postgres")
        assert (hit.found_by, "no answer" in hit.degraded) == (("lexical",), True)
        [fact] = await memory.facts.search("sails")
        assert (fact.found_by, "no answer" in fact.degraded) == (("text",), True)
        assert (await memory.assemble("postgres", budget_tokens=1000)).messages
        with pytest.raises(TimedOutError):
            await state.vectors.add([Document.from_text("low tide", id="d1")])
        assert await state.vectors.list_collections() == []
