"""Replicas of Valkey take over, also those that are behind: at `committed` nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import holdfast
from holdfast import ChatMessage, Event, Settings
from holdfast.contracts.short_term import States
from holdfast.engines.redis import scripts
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.short_term import RedisStates
from holdfast.errors import ConfigError, ConflictError, EngineError
from holdfast.testing.valkey_sentinel import ValkeySentinel
from holdfast.testing.valkey_server import ValkeyServer
from holdfast.wiring.doctor import examine
from tests.durability.promotions import ANA, COMMITTED, LIMIT_SECONDS, promoted_behind, said, say
from tests.engines.hybrid import cluster_with_replicas
from tests.engines.postgres_database import empty_database

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]


@pytest.fixture
def pair() -> Iterator[tuple[ValkeyServer, ValkeyServer]]:
    """A primary and its replica."""
    primary = ValkeyServer(fsync="no")
    primary.start()
    replica = ValkeyServer("--replicaof", f"127.0.0.1 {primary.port}", fsync="no")
    replica.start()
    yield primary, replica
    primary.remove()
    replica.remove()


@pytest.fixture
def group() -> Iterator[ValkeySentinel]:
    """A primary with two replicas behind Sentinels."""
    found = ValkeySentinel()
    found.start()
    yield found
    found.remove()


async def test_what_a_promoted_replica_lacks_is_read_and_kept(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    async with promoted_behind(pair) as (url, state):
        assert await said(state, 2) == ["3", "4"]
        assert set(await state.short_term.get_state("s1")) == {"k1", "k2", "k3", "k4"}
        for number in (5, 6):
            await say(state, number)
        assert await said(state, 3) == ["4", "5", "6"]
        async with holdfast.open(url, settings=COMMITTED) as durable:
            assert await said(durable, 10) == ["1", "2", "3", "4", "5", "6"]
        keys = await state.short_term.get_state("s1")
        assert set(keys) == {f"k{number}" for number in range(1, 7)}


async def test_a_write_before_any_read_does_not_undo_what_a_promoted_replica_lacks(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    async with promoted_behind(pair) as (_, state):
        await state.short_term.update_state("s1", {"k5": 5})
        await state.history.append(ANA, ChatMessage.user("5"), session_id="s1")
        assert set(await state.short_term.get_state("s1")) == {"k1", "k2", "k3", "k4", "k5"}
        assert await said(state, 10) == ["1", "2", "3", "4", "5"]


async def test_a_state_that_was_cleared_stays_cleared_on_a_promoted_replica(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    async with promoted_behind(pair) as (_, state):
        await state.short_term.clear("s1")
        assert await state.short_term.get_state("s1") == {}
        await state.short_term.update_state("s1", {"k9": 9})
        assert await state.short_term.get_state("s1") == {"k9": 9}


async def test_without_its_mark_a_promoted_replica_would_undo_writes(
    pair: tuple[ValkeyServer, ValkeyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "for_replicas", dict)
    async with promoted_behind(pair) as (_, state):
        assert await said(state, 2) == ["1", "2"]
        await state.short_term.update_state("s1", {"k5": 5})
        assert set(await state.short_term.get_state("s1")) == {"k1", "k2", "k5"}


async def test_behind_sentinel_committed_is_the_default_and_fsync_is_refused(
    group: ValkeySentinel,
) -> None:
    async with empty_database() as url:
        async with holdfast.open(url, redis=group.url, settings=Settings(auto_migrate=True)) as one:
            health = {engine.engine: engine for engine in (await one.ops.health()).engines}
            assert health["hybrid"].durability.startswith("committed")
            assert health["redis"].durability.startswith("unproved")
            assert health["redis"].version.endswith(", sentinel")
            # A client finds the new primary by itself, and so does its listener.
            channel = one.channel("news")
            await channel.publish({"at": 1})
            await asyncio.to_thread(group.fail_over)
            async with asyncio.timeout(LIMIT_SECONDS):
                while True:
                    try:
                        await channel.publish({"at": 2})
                        await say(one, 1)
                        break
                    except EngineError:
                        await asyncio.sleep(0.05)
            assert await said(one, 10) == ["1"]
        settings = Settings(ack_level="fsync", redis_level="fsync")
        with pytest.raises(ConfigError, match="a replica that is behind may be promoted"):
            await holdfast.open(url, redis=group.url, settings=settings).__aenter__()
        settings = Settings(database_url=url, redis_url=group.url)
        found = {engine.engine: engine async for engine in examine(settings)}
        assert found["hybrid"].status == "ok"


async def test_a_url_of_sentinels_needs_a_service() -> None:
    async with empty_database() as url:
        for bad in ("redis+sentinel://127.0.0.1:1", "redis+sentinel:///cache"):
            with pytest.raises(ConfigError, match="redis\\+sentinel://host:port,host:port/service"):
                await holdfast.open(url, redis=bad, settings=COMMITTED).__aenter__()


async def test_a_batch_over_several_slots_is_written_whole_or_not_at_all() -> None:
    cluster = cluster_with_replicas()
    async with (
        empty_database() as url,
        holdfast.open(url, redis=cluster.url, settings=COMMITTED) as state,
        holdfast.open(url, redis=cluster.url, settings=COMMITTED) as other,
    ):
        sessions = [f"s{at}" for at in range(8)]

        def events(kind: str) -> list[Event]:
            return [Event(ANA, session, kind, {"of": kind}) for session in sessions]

        for one in events("single"):
            await state.episodes.append([one])
        batch = events("batch")
        await state.episodes.append(batch)
        # Of another process, which has these sessions in Valkey.
        for one in events("after"):
            await other.episodes.append([one])
        again = await state.episodes.append(batch)
        assert [one.id for one in again] == [one.id for one in batch]
        bad = [*events("bad")[:-1], Event(ANA, "s7", "bad", {"of": "x"}, id=batch[7].id)]
        with pytest.raises(ConflictError):
            await state.episodes.append(bad)
        for session in sessions:
            for reader in (state, other):
                found = await reader.episodes.recent(ANA, session_id=session, limit=10)
                assert [one.type for one in found] == ["single", "batch", "after"]


async def test_states_from_before_the_hybrid_are_kept_on_a_cluster() -> None:
    cluster = cluster_with_replicas()
    alone = await Redis.open(cluster.url)
    await States(RedisStates(alone)).set_state("old", {"step": 1})
    await alone.aclose()
    async with (
        empty_database() as url,
        holdfast.open(url, redis=cluster.url, settings=COMMITTED) as state,
    ):
        assert await state.short_term.get_state("old") == {"step": 1}
        await state.short_term.update_state("old", {"more": 2})
        assert await state.short_term.get_state("old") == {"step": 1, "more": 2}
        await state.short_term.clear("old")
        assert await state.short_term.get_state("old") == {}
