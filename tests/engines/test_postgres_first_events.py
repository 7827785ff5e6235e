"""A batch of events in sessions that are all new is stored at once, each numbered from one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.values.errors import ConflictError
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId
from tests.engines.postgres_database import connected, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA, BOB = AgentId("writer", "ana"), AgentId("writer", "bob")
STORE = "SELECT * FROM holdfast.store_events('default', $1, $2, $3, $4, $5, $6, $7, NULL::text[])"

SLOW = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF NEW.id LIKE 'm%' THEN PERFORM pg_sleep(0.2); END IF; RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON holdfast.sessions FOR EACH ROW EXECUTE FUNCTION slow()"""


def _event(session: str, number: int, agent: AgentId = ANA) -> Event:
    return Event(agent, session, "note", {"n": number, "text": "tide"}, id=f"{session}-{number}")


def _placed(found: list[Event]) -> list[tuple[str, int | None, int | None]]:
    return [(one.id, one.epoch, one.seq) for one in found]


async def test_the_events_of_each_new_session_are_numbered_in_their_order() -> None:
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=2)
        store = EpisodicMemory(PostgresEpisodes(engine))
        batch = [_event("b", 1), _event("a", 1, BOB), _event("b", 2, BOB), _event("a", 2)]
        stored = await store.append(batch)
        again = await store.append(batch)
        mixed = await store.append([_event("c", 1), _event("a", 3)])
        with pytest.raises(ConflictError):
            await store.append([_event("d", 1), Event(ANA, "a", "note", {}, id="a-1")])
        sessions = {one.id: one for one in await store.list_sessions(ALL_AGENTS)}
        found = {
            name: await store.recent(ALL_AGENTS, session_id=name, limit=None) for name in "abc"
        }
        hits = await store.recall(ANA, "tide", limit=10)
        await engine.aclose()
    expected = [("b-1", 1, 1), ("a-1", 1, 1), ("b-2", 1, 2), ("a-2", 1, 2)]
    assert _placed(stored) == _placed(again) == expected
    assert _placed(mixed) == [("c-1", 1, 1), ("a-3", 1, 3)]
    # The agent of the first event began the session; the batch with a conflict made none.
    assert {name: one.agent_id for name, one in sessions.items()} == {"a": BOB, "b": ANA, "c": ANA}
    assert [one.id for one in found["a"]] == ["a-1", "a-2", "a-3"]
    assert [one.id for one in found["b"]] == ["b-1", "b-2"]
    # All of them are indexed: none of them was left out of what is to be indexed.
    assert {hit.event.id for hit in hits} == {"b-1", "a-2", "c-1", "a-3"}


async def test_a_session_that_another_batch_makes_meanwhile_goes_on_after_it() -> None:
    def columns(*events: Event) -> tuple[list[Any], ...]:
        return (
            [one.session_id for one in events],
            [str(one.agent_id) for one in events],
            [one.type for one in events],
            [one.id for one in events],
            ["" for _ in events],
            [one.occurred_at for one in events],
            ["{}" for _ in events],
        )

    async with migrated_database() as url, connected(url) as first, connected(url) as second:
        for one in (first, second):
            await one.execute("SELECT set_config('holdfast.tenant', 'default', false)")
        held = first.transaction()
        await held.start()
        await first.fetch(STORE, *columns(_event("b", 1), _event("c", 1)))
        waits = asyncio.create_task(
            second.fetch(STORE, *columns(_event("a", 1), _event("b", 2), _event("c", 2)))
        )
        watch = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        async with connected(url) as watcher:
            while not await watcher.fetchval(watch):
                await asyncio.sleep(0.01)
        await held.commit()
        placed = sorted((row["place"], row["epoch"], row["seq"]) for row in await waits)
        seqs = await first.fetch("SELECT id, seq FROM holdfast.sessions ORDER BY id")
    assert placed == [(1, 1, 1), (2, 1, 2), (3, 1, 2)]
    assert [tuple(row) for row in seqs] == [("a", 1), ("b", 2), ("c", 2)]


async def test_two_batches_never_wait_for_each_other() -> None:
    """Neither where the first one makes a session that the other one is waiting to append to."""

    def columns(*sessions: str, of: str) -> tuple[list[Any], ...]:
        many = len(sessions)
        ids = [f"{of}-{at}" for at in range(many)]
        times = [datetime.now(UTC)] * many
        return list(sessions), ["a"] * many, ["note"] * many, ids, [""] * many, times, ["{}"] * many

    watch = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with (
        migrated_database() as url,
        connected(url) as first,
        connected(url) as second,
        connected(url) as third,
        connected(url) as watcher,
    ):
        for one in (first, second, third):
            await one.execute("SELECT set_config('holdfast.tenant', 'default', false)")

        async def until_waiting(many: int) -> None:
            while await watcher.fetchval(watch) < many:
                await asyncio.sleep(0.01)

        await first.fetch(STORE, *columns("b", of="known"))
        # Slow enough that each batch has made or locked a session before the other one goes on.
        await watcher.execute(SLOW)
        for at in range(3):
            held = first.transaction()
            await held.start()
            await first.fetch(STORE, *columns(f"m{at}", f"n{at}", of=f"first{at}"))
            known = second.fetch(STORE, *columns("b", f"m{at}", f"z{at}", of=f"second{at}"))
            waits = asyncio.create_task(known)
            await until_waiting(1)
            new = third.fetch(STORE, *columns(f"c{at}", f"m{at}", f"z{at}", of=f"third{at}"))
            waits_too = asyncio.create_task(new)
            await until_waiting(2)
            await held.commit()
            await asyncio.gather(waits, waits_too)
