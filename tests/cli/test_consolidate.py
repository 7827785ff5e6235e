"""``holdfast consolidate`` and ``holdfast dead-letters``, as an operator runs them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer

ANA = AgentId("writer", "ana")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    postgres, valkey = PostgresServer(18), ValkeyServer()
    postgres.start()
    valkey.start()
    yield {"DATABASE_URL": postgres.url(), "REDIS_URL": valkey.url}
    valkey.remove()
    postgres.remove()


def _command(servers: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli", *words],
        env={**os.environ, **servers, "HOLDFAST_AUTO_MIGRATE": "1"},
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(servers: dict[str, str], *words: str) -> str:
    process = _command(servers, *words)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, out + error
    return out


async def _record(servers: dict[str, str], *notes: str, session: str = "s1") -> None:
    settings = Settings(
        database_url=servers["DATABASE_URL"], redis_url=servers["REDIS_URL"], auto_migrate=True
    )
    async with holdfast.open(settings=settings, background=False) as state:
        await state.episodes.append([Event(ANA, session, "note", {"note": one}) for one in notes])


async def _stored(servers: dict[str, str], session: str = "s1") -> list[str]:
    async with holdfast.open(servers["DATABASE_URL"], settings=Settings()) as state:
        found = await state.episodes.recent(ANA, session_id=session)
        return [one.payload["note"] for one in found]


def test_once_takes_along_what_is_there_and_ends(servers: dict[str, str]) -> None:
    asyncio.run(_record(servers, "a", "b"))
    assert asyncio.run(_stored(servers)) == []
    assert "2 events" in _run(servers, "consolidate", "--once")
    assert asyncio.run(_stored(servers)) == ["a", "b"]


def test_sigterm_drains_and_ends_with_zero(servers: dict[str, str]) -> None:
    process = _command(servers, "consolidate", "--log-json")
    asyncio.run(_record(servers, "c", session="s2"))
    limit = time.monotonic() + 60
    while asyncio.run(_stored(servers, "s2")) != ["c"]:
        assert time.monotonic() < limit
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    lines = [json.loads(line) for line in error.splitlines() if line.startswith("{")]
    assert lines[-1]["message"] == "drained"


def test_without_a_redis_it_says_what_is_missing(servers: dict[str, str]) -> None:
    process = _command({**servers, "REDIS_URL": ""}, "consolidate", "--once")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "redis=" in error


async def _refuse(servers: dict[str, str], *, poison: bool) -> None:
    change = (
        "ADD CONSTRAINT p CHECK (body !~ 'poison') NOT VALID" if poison else "DROP CONSTRAINT p"
    )
    import asyncpg  # noqa: PLC0415 - around the store, once

    connection = await asyncpg.connect(servers["DATABASE_URL"])
    await connection.execute(f"ALTER TABLE holdfast.events {change}")
    await connection.close()


def test_dead_letters_are_listed_shown_replayed_and_discarded(servers: dict[str, str]) -> None:
    asyncio.run(_record(servers, "first", session="s3"))
    asyncio.run(_refuse(servers, poison=True))
    asyncio.run(_record(servers, "poison", "poison too", "after", session="s3"))
    _run(servers, "consolidate", "--once")
    one, other = json.loads(_run(servers, "dead-letters", "list", "--json"))
    assert one["session"] in _run(servers, "dead-letters", "list")
    assert '{"note":"poison"}' in _run(servers, "dead-letters", "show", one["id"])
    asyncio.run(_refuse(servers, poison=False))
    assert "stored at 1.2" in _run(servers, "dead-letters", "replay", one["id"])
    assert "discarded" in _run(servers, "dead-letters", "discard", other["id"])
    assert json.loads(_run(servers, "dead-letters", "list", "--json")) == []
    assert asyncio.run(_stored(servers, "s3")) == ["first", "poison", "after"]
    process = _command(servers, "dead-letters", "show", "nowhere")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "dead letter 'nowhere' was not found" in error


def test_without_a_redis_it_names_the_variable_to_set(servers: dict[str, str]) -> None:
    process = _command({"DATABASE_URL": servers["DATABASE_URL"], "REDIS_URL": ""}, "consolidate")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "set REDIS_URL" in error


def test_it_waits_for_a_postgres_that_is_not_up_yet(servers: dict[str, str]) -> None:
    late = PostgresServer(18)
    try:
        process = _command(
            {**servers, "DATABASE_URL": late.url()}, "consolidate", "--once", "--wait-seconds=600"
        )
        assert process.stderr is not None
        assert "not up yet" in process.stderr.readline()
        late.start()
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        assert "0 events" in out
    finally:
        late.remove()


def test_it_gives_up_after_the_time_it_may_wait(servers: dict[str, str]) -> None:
    nowhere = {**servers, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    process = _command(nowhere, "consolidate", "--once", "--wait-seconds=0.5")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "is the server up?" in error.splitlines()[-1]


def test_what_waiting_cannot_mend_is_told_at_once(servers: dict[str, str]) -> None:
    missing = servers["DATABASE_URL"].replace("/postgres?", "/nowhere?")
    assert missing != servers["DATABASE_URL"]
    process = _command(
        {**servers, "DATABASE_URL": missing}, "consolidate", "--once", "--wait-seconds=6000"
    )
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "check the user, password and database" in error
    assert "not up yet" not in error
