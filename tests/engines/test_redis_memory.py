"""The memory of Redis alone: the suite's promises, but for those that need deep recall."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import holdfast
from holdfast import ALL_AGENTS, AgentMemory, ChatMessage
from holdfast.contracts.event_log import Events
from holdfast.engines.redis.episodes import RedisEvents
from holdfast.engines.redis.wake import RedisWake
from holdfast.errors import NotSupportedError
from holdfast.memory.agent_memory import MemoryStores, StoredMemory
from holdfast.testing import test_agent_memory, test_agent_memory_recall
from holdfast.values.errors import ConflictError
from tests.engines.redis import RedisClusterHarness, RedisHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

RECALL = "there is no deep recall"
EVERYTHING = "there is no index over sessions"
FACTS = "there are no facts"
NOT_SERVED = {
    "test_a_message_of_the_transcript_is_recalled_too": RECALL,
    "test_assemble_recalls_as_many_events_as_the_budget_may_hold_at_most_limit": RECALL,
    "test_assemble_shows_recalled_events_in_the_order_of_time_with_each_day_once": RECALL,
    "test_assemble_puts_state_facts_and_recalled_events_before_the_recent_window": FACTS,
    "test_assemble_shows_nothing_twice": FACTS,
    "test_assemble_stays_within_its_budget": FACTS,
    "test_a_memory_is_still_there_after_a_reopen": FACTS,
    "test_every_hit_says_which_arms_found_it_with_a_score_between_0_and_1": RECALL,
    "test_explanations_and_rerankers_go_together_with_neighbours_and_recency": RECALL,
    "test_facts_are_the_agents_in_every_session": FACTS,
    "test_hydrate_of_a_known_session_has_its_state_and_its_recent_events": EVERYTHING,
    "test_hydrate_of_a_new_session_says_so_and_is_empty": RECALL,
    "test_hydrate_with_a_query_recalls_from_all_sessions": RECALL,
    "test_hydrate_with_the_embedder_down_answers_and_says_so": RECALL,
    "test_neighbours_and_recency_change_nothing_unless_they_are_asked_for": RECALL,
    "test_neighbours_bring_in_what_stands_beside_a_hit": RECALL,
    "test_one_agent_never_sees_anothers_memory": RECALL,
    "test_one_tenant_never_sees_anothers_memory": RECALL,
    "test_recall_by_vector_finds_the_nearest": RECALL,
    "test_recall_finds_what_was_said_in_an_earlier_session": RECALL,
    "test_recall_is_narrowed_by_session_type_and_time": RECALL,
    "test_recency_lifts_the_newer_of_two_hits": RECALL,
    "test_what_is_recorded_without_a_session_is_the_agents_own": EVERYTHING,
    "test_where_narrows_recent_between_and_recall_to_payloads_that_pass": RECALL,
    "test_without_a_session_recent_and_between_hold_everything_the_agent_did": EVERYTHING,
}

PROMISES = {
    name: function
    for module in (test_agent_memory, test_agent_memory_recall)
    for name, function in vars(module).items()
    if name.startswith("test_")
}


class _Alone:
    """A harness whose memory is on Redis and nothing else."""

    def memory(
        self, agent: str, *, session_id: str | None = None, tenant: str = "default"
    ) -> AgentMemory:
        engine = self.engine  # type: ignore[attr-defined]
        log, wakes = Events(RedisEvents(engine, tenant=tenant)), RedisWake(engine, tenant=tenant)
        states = self.store("short_term", tenant=tenant)  # type: ignore[attr-defined]
        return StoredMemory(MemoryStores(log, states, wakes), agent, session_id=session_id)


class AloneHarness(_Alone, RedisHarness):  # type: ignore[misc]
    """A standalone server."""


class AloneClusterHarness(_Alone, RedisClusterHarness):  # type: ignore[misc]
    """A cluster."""


@pytest.mark.parametrize("name", sorted(PROMISES.keys() - NOT_SERVED.keys()))
@pytest.mark.parametrize("kind", [AloneHarness, AloneClusterHarness])
async def test_redis_alone_keeps_the_promise(kind: type[Any], name: str) -> None:
    harness = kind()
    await harness.open()
    try:
        given = {"harness": harness, "memory": harness.memory("writer/ana", session_id="s1")}
        wanted = inspect.signature(PROMISES[name]).parameters
        await PROMISES[name](**{key: given[key] for key in wanted})
    finally:
        await harness.close()


async def test_what_is_not_served_names_promises_that_exist() -> None:
    assert set(NOT_SERVED) <= set(PROMISES)


async def test_what_needs_a_durable_store_says_which_wiring_to_open() -> None:
    harness = AloneHarness()
    await harness.open()
    async with holdfast.open(harness.url()) as state:
        memory = state.memory("writer/ana", session_id="s1")
        await memory.record("note", {"note": 1})
        for call in (
            memory.recall("note"),
            memory.hydrate("note"),
            state.memory("writer/ana").recent(),
            memory.record_many([("note", {})], [[1.0]]),
        ):
            with pytest.raises(NotSupportedError, match="postgresql://"):
                await call
        with pytest.raises(NotSupportedError, match="Postgres"):
            _ = memory.facts
        assert set(state.engines) == {"history", "short_term", "channel"}
        await memory.state.update({"step": 2})
        woken = await memory.hydrate()
        assert (woken.status, woken.state, len(woken.recent)) == ("warm", {"step": 2}, 1)
        context = await memory.assemble("anything?", 500)
        assert [item.kind for item in context.kept] == ["state", "recent"]
        assert "does not support recall" in context.degraded
    await harness.close()


async def test_a_message_and_another_event_never_share_an_id() -> None:
    harness = AloneHarness()
    await harness.open()
    memory = harness.memory("writer/ana", session_id="s1")
    said = ChatMessage.user("yes")
    await memory.record("message", said)
    with pytest.raises(ConflictError):
        await memory.record("note", {}, event_id=said.id)
    await memory.record("note", {}, event_id="n1")
    with pytest.raises(ConflictError):
        await memory.record("message", ChatMessage.user("no", id="n1"))
    assert len(await memory.recent()) == 2
    await harness.close()


async def test_a_long_session_is_read_in_pages_by_type_and_time() -> None:
    harness = AloneHarness()
    await harness.open()
    memory = harness.memory("writer/ana", session_id="s1")
    await memory.record("rare", {"note": "first"})
    for start in range(0, 1200, 300):
        await memory.record_many([("note", {"note": at}) for at in range(start, start + 300)])
    assert [one.payload for one in await memory.recent(5, types=["rare"])] == [{"note": "first"}]
    few = {"note": {"$lt": 3}}
    assert [one.payload["note"] for one in await memory.recent(2, where=few)] == [1, 2]
    assert len(await memory.recent(5, where=few)) == 3
    newest = await memory.recent(700)
    assert [one.payload["note"] for one in newest] == list(range(500, 1200))
    first = newest[0]
    after = await memory.between(
        first.occurred_at.replace(year=2000),
        first.occurred_at.replace(year=2100),
        cursor=first.cursor,
    )
    assert [one.seq for one in after] == list(range(first.seq + 1, first.seq + 700))
    late = await memory.between(
        first.occurred_at.replace(year=2000),
        first.occurred_at.replace(year=2100),
        where={"note": {"$gte": 1198}},
        limit=1,
    )
    assert [one.payload["note"] for one in late] == [1198]
    log = Events(RedisEvents(harness.engine))
    for call in (
        log.recent(ALL_AGENTS, session_id="s1"),
        log.between(
            ALL_AGENTS, first.occurred_at, first.occurred_at, session_id="s1", where={"note": 1}
        ),
    ):
        with pytest.raises(NotSupportedError, match=r"all agents.*name an agent_id"):
            await call
    await harness.close()


async def test_what_rests_longer_than_its_time_to_live_is_new_again() -> None:
    harness = AloneHarness()
    await harness.open()
    log = Events(RedisEvents(harness.engine, ttl_seconds=60))
    states = harness.store("short_term")
    stores = MemoryStores(log, states, RedisWake(harness.engine))
    memory = StoredMemory(stores, "writer/ana", session_id="s1")
    await memory.record("note", {"note": 1})
    await harness.elapse(61)
    assert await memory.recent() == []
    await harness.elapse(60)
    assert (await memory.hydrate()).status == "new"
    await harness.close()
