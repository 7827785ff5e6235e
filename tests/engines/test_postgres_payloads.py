"""What a filter sees of an event on Postgres: as it is written, and as it is read from a body."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.history import History
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.payloads import filterable_text
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.testing.hostile import JSON_VALUES, KEPT, TEXTS
from holdfast.values.codec import encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "operate-postgres.md"
TRICKY = [
    *(
        "\\u0000",
        "\\\\u0001",
        "\x00\\u0000",
        "\\\x00",
        "\\\\\x01",
        "\x02\\\x02",
        '"\x00"',
        "\x01" * 256,
    ),
    *("\x00" * 257, "é" * 128, "é" * 129, "\\" * 256, "\\" * 257),
]


async def test_python_and_sql_see_the_same_of_a_body() -> None:
    rng = random.Random(1)  # noqa: S311 - the same every time
    mixed = ["".join(rng.choices('\x00\x01\x02\\"u01é', k=rng.randint(1, 9))) for _ in range(500)]
    payloads: list[dict[str, Any]] = [
        *({one: one + "x" * (at % 260)} for at, one in enumerate(mixed)),
        *({"k": one} for one in TRICKY),
        *({one: 1} for one in TRICKY),
        *({"k": one.value} for one in JSON_VALUES if one.verdict is KEPT),
        *({"k": one.value, one.value: 1} for one in TEXTS if one.verdict is KEPT),
        {},
    ]
    bodies = [*(encode_json(one) for one in payloads), "[1]", "1", '"x"', "null"]
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        for body in bodies:
            same = "SELECT holdfast.filterable_of($1) = $2::text::jsonb"
            assert await connection.fetchval(same, body, filterable_text(body)), body[:100]


async def test_every_way_to_write_an_event_keeps_what_a_filter_sees() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        log = EpisodicMemory(PostgresEpisodes(engine))

        def event(name: str, session: str = "s1") -> Event:
            return Event(ANA, session, "note", {"name": name, "part": [1]}, id=name)

        await log.append([event("one")])
        await log.append([event("some 1"), event("some 2")])
        await log.append([event("some 2"), event("known")])
        await log.append([event("many 1"), event("many 2", "s2")])
        await log.append([event("vector")], embeddings=[[1.0]])
        rows = await engine.fetch(
            "SELECT id, filterable = jsonb_build_object('name', id) FROM holdfast.events "
            "WHERE tenant = $1",
            "default",
            safe=True,
        )
        await engine.aclose()
        assert {row[0] for row in rows} == {
            *("one", "some 1", "some 2", "known", "many 1", "many 2", "vector")
        }
        assert all(row[1] for row in rows)


async def test_nothing_is_stored_beside_a_message_and_a_filter_reads_its_body() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        log = EpisodicMemory(PostgresEpisodes(engine))
        for at, text in enumerate(("low tide", "high tide")):
            said = ChatMessage.user(text) if at else ChatMessage.assistant(text)
            await log.append([Event.of_message(ANA, "s1", said), Event(ANA, "s1", "note", {})])
        await History(PostgresTranscripts(engine)).append_many(
            ANA, [ChatMessage.user("noon"), ChatMessage.user("dusk")], session_id="s1"
        )
        rows = await engine.fetch(
            "SELECT DISTINCT type, filterable IS NULL FROM holdfast.events WHERE tenant = $1",
            "default",
            safe=True,
        )
        found = await log.recent(ANA, where={"role": "user"})
        await engine.aclose()
        assert sorted(map(tuple, rows)) == [("message", True), ("note", False)]
        assert [one.to_message().text for one in found] == ["high tide", "noon", "dusk"]


async def test_an_event_of_an_earlier_version_is_found_before_and_after_it_is_filled() -> None:
    old = "SELECT * FROM holdfast.append_event('acme', $1, 'writer/ana', 'note', $1, '', $2, $3)"
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        for at in range(4):
            body = encode_json({"note": f"tide {at}", "at": at, "nul": "\x00", "why": "x" * 257})
            await connection.fetch(old, f"s{at}", NOON + timedelta(minutes=at), body)
        engine = await Postgres.open(url)
        log = EpisodicMemory(PostgresEpisodes(engine, tenant="acme"))
        where = {"at": {"$gte": 2}, "nul": "\x00", "why": {"$exists": False}}
        empty = "SELECT count(*) FROM holdfast.events WHERE filterable IS NULL"
        for left in (4, 0):
            assert await connection.fetchval(empty) == left
            for agent in (ANA, ALL_AGENTS):
                span = (NOON, NOON + timedelta(days=1))
                found = [
                    await log.recent(agent, where=where),
                    await log.between(agent, *span, where=where),
                    [one.event for one in await log.recall(agent, "tide", where=where)][::-1],
                    [one.event for one in await log.recall(agent, "", where=where)][::-1],
                ]
                assert [sorted(one.id for one in some) for some in found] == [["s2", "s3"]] * 4
            # As the page for operators says.
            [fill] = re.findall(
                r"^UPDATE holdfast.events.*?;$", PAGE.read_text(), re.MULTILINE | re.DOTALL
            )
            await connection.execute(fill)
        await engine.aclose()


async def test_the_migration_takes_indexes_that_were_built_before_it() -> None:
    blocks = re.findall(r"^CREATE INDEX CONCURRENTLY (\w+) .*;$", PAGE.read_text(), re.MULTILINE)
    assert blocks == ["events_by_time", "events_of_owner"]
    statements = re.findall(r"^CREATE INDEX CONCURRENTLY .*;$", PAGE.read_text(), re.MULTILINE)
    defined = "SELECT indexdef FROM pg_indexes WHERE indexname = ANY ($1) ORDER BY 1"
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        made = await connection.fetch(defined, blocks)
        [last] = [one for one in migrate.migrations() if one.name == "filter_events"]
        for name in blocks:
            await connection.execute(f"DROP INDEX holdfast.{name}")
        for statement in statements:
            await connection.execute(statement)
        await connection.execute(last.sql)
        assert await connection.fetch(defined, blocks) == made
        assert len(made) == 2
