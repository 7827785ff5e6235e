"""Migrations, the live catalog, and the statements against it."""

from __future__ import annotations

import asyncio
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.archive_rows import SAVED
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.archive.kinds import BY_NAME
from holdfast.spi.erasure import STORES
from holdfast.values.errors import ConfigError, SchemaError
from scripts.schema_sql import migrated_schema
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENGINE = Path(migrate.__file__).parent
STATEMENTS = sorted(
    (path.stem, name) for path in (ENGINE / "sql").glob("*.sql") for name in load(path.stem)
)


async def test_migrating_twice_is_a_no_op() -> None:
    async with empty_database() as url, connected(url) as connection:
        every = (*migrate.migrations(), *migrate.function_files())
        assert await migrate.migrate(connection) == every
        assert await migrate.migrate(connection) == ()
        found = await migrate.status(connection)
        assert (found.have, found.pending, found.tampered) == (found.want, (), ())


async def test_eight_processes_migrating_at_once_apply_each_migration_once() -> None:
    program = (
        "import asyncio, sys, asyncpg\n"
        "from holdfast.engines.postgres import migrate\n"
        "async def main():\n"
        "    connection = await asyncpg.connect(sys.argv[1])\n"
        "    print(len(await migrate.migrate(connection)))\n"
        "    await connection.close()\n"
        "asyncio.run(main())\n"
    )
    async with empty_database() as url:
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, url, stdout=asyncio.subprocess.PIPE
            )
            for _ in range(8)
        ]
        outputs = [(await process.communicate())[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * 8
        assert sorted(map(int, outputs)) == [0] * 7 + [
            len(migrate.migrations()) + len(migrate.function_files())
        ]


async def test_a_migration_outside_of_a_transaction_may_build_an_index_concurrently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = migrate.Migration(
        len(migrate.migrations()) + 1,
        "index_runs",
        "-- transaction: none\n"
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS runs ON holdfast.events (tenant, run);\n"
        "ANALYZE holdfast.events;\n",
    )
    every = (*migrate.migrations(), later)
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        monkeypatch.setattr(migrate, "migrations", lambda: every)
        assert await migrate.migrate(connection) == (later,)
        assert await connection.fetchval("SELECT to_regclass('holdfast.runs') IS NOT NULL")
        assert await migrate.migrate(connection) == ()


async def test_a_tampered_migration_is_detected() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        await connection.execute("UPDATE holdfast.migrations SET sha256 = 'x' WHERE version = 2")
        assert (await migrate.status(connection)).tampered == ("0002_create_session_log",)
        with pytest.raises(SchemaError, match="0002_create_session_log"):
            await Postgres.open(url)
        with pytest.raises(SchemaError, match="0002_create_session_log"):
            await migrate.migrate(connection)


async def test_opening_a_database_without_the_schema_makes_it() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url)
        await engine.aclose()
        async with connected(url) as connection:
            assert (await migrate.status(connection)).pending == ()


async def test_opening_an_old_schema_says_the_command_and_the_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = migrate.migrations()
    async with empty_database() as url, connected(url) as connection:
        with monkeypatch.context() as old:
            old.setattr(migrate, "migrations", lambda: every[:-1])
            old.setattr(migrate, "function_files", lambda: ())
            await migrate.migrate(connection)
        with pytest.raises(SchemaError, match="or set HOLDFAST_AUTO_MIGRATE=1") as caught:
            await Postgres.open(url)
        assert (caught.value.have, caught.value.want) == (len(every) - 1, len(every))
        engine = await Postgres.open(url, auto_migrate=True)
        await engine.aclose()
        engine = await Postgres.open(url)
        await engine.aclose()


async def test_functions_are_applied_again_when_their_version_is_higher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def versions(number: int, answer: int) -> migrate.FunctionFile:
        body = f"CREATE OR REPLACE FUNCTION holdfast.tide() RETURNS int RETURN {answer};"
        return migrate.FunctionFile(number, "tides", f"-- version: {number}\n{body}")

    every = migrate.function_files()
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        for number, answer in ((1, 10), (2, 20)):
            file = versions(number, answer)
            monkeypatch.setattr(migrate, "function_files", lambda file=file: (*every, file))
            with pytest.raises(SchemaError, match=f"functions/tides {number}.*AUTO_MIGRATE"):
                await Postgres.open(url)
            engine = await Postgres.open(url, auto_migrate=True)
            await engine.aclose()
            assert await connection.fetchval("SELECT holdfast.tide()") == answer
        # Older code works on newer functions, and does not put its own in their place.
        monkeypatch.setattr(migrate, "function_files", lambda: (*every, versions(1, 10)))
        engine = await Postgres.open(url, auto_migrate=True)
        await engine.aclose()
        assert await migrate.migrate(connection) == ()
        assert await connection.fetchval("SELECT holdfast.tide()") == 20
        monkeypatch.setattr(migrate, "function_files", lambda: (*every, versions(2, 30)))
        with pytest.raises(SchemaError, match="functions/tides 2"):
            await migrate.migrate(connection)


async def test_the_function_files_hold_every_function_and_nothing_else() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        rows = await connection.fetch(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace"
        )
    text = "".join(file.sql for file in migrate.function_files())
    held = re.findall(r"^CREATE OR REPLACE FUNCTION holdfast\.(\w+)\(", text, re.MULTILINE)
    # The clock stays where it is: tests move it.
    assert sorted(held) == sorted({row["proname"] for row in rows} - {"now"})


async def test_schema_sql_is_the_schema_of_a_migrated_database() -> None:
    assert (ENGINE / "schema.sql").read_text(encoding="utf-8") == await migrated_schema()


async def test_a_newer_schema_than_the_code_is_refused() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        newer = len(migrate.migrations()) + 1
        await connection.execute("INSERT INTO holdfast.migrations VALUES ($1, 'later', 'x')", newer)
        for auto_migrate in (False, True):
            with pytest.raises(SchemaError, match="upgrade holdfast"):
                await Postgres.open(url, auto_migrate=auto_migrate)


async def test_a_server_that_may_lose_a_commit_is_refused_unless_told() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        with pytest.raises(ConfigError, match="synchronous_commit is off"):
            await Postgres.open(url)
        engine = await Postgres.open(url, allow_unsafe=True)
        await engine.aclose()


async def test_every_primary_key_and_unique_index_leads_with_tenant() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        rows = await connection.fetch(
            """
            SELECT c.relname AS name, i.indrelid::regclass::text AS of, a.attname AS first
            FROM pg_index i
            JOIN pg_class c ON c.oid = i.indexrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            WHERE n.nspname = 'holdfast' AND i.indisunique
            """
        )
        wrong = [row["name"] for row in rows if row["first"] != "tenant"]
        assert len(rows) > 10
        # The key of an agent or a session belongs to one tenant, and is repeated in every row.
        by_key = [
            row["name"]
            for row in rows
            if row["first"] in {"agent_key", "session_key"}
            or (row["of"], row["first"]) == ("holdfast.sessions", "key")
        ]
        assert sorted(by_key) == [
            *("event_blocks_pkey", "event_numbers_of_session", "event_numbers_pkey"),
            *("event_speakers_pkey", "sessions_keyed"),
        ]
        assert sorted(set(wrong) - set(by_key)) == [
            *("function_files_pkey", "migrations_pkey", "notice_key_pkey")
        ]


async def test_every_text_key_is_compared_by_code_points() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        rows = await connection.fetch(
            """
            SELECT DISTINCT i.indrelid::regclass::text AS of, a.attname AS name
            FROM pg_index i
            JOIN pg_class c ON c.oid = i.indexrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
            JOIN pg_collation k ON k.oid = a.attcollation
            WHERE n.nspname = 'holdfast' AND k.collname <> 'C'
            """
        )
        assert [f"{row['of']}.{row['name']}" for row in rows] == []


async def test_every_named_statement_prepares() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        failed = []
        for contract, name in STATEMENTS:
            try:
                await connection.prepare(load(contract)[name])
            except Exception as error:  # noqa: BLE001 - all of them, at once
                failed.append(f"{contract}.{name}: {error}")
        assert failed == []


async def test_every_named_statement_is_used_and_none_is_missing() -> None:
    source = {str(path): path.read_text() for path in ENGINE.rglob("*.py")}
    files = {file: set(re.findall(r"load\(\"(\w+)\"\)", text)) for file, text in source.items()}
    used = {
        (contract, name)
        for file, text in source.items()
        for name in re.findall(r"_[A-Z]+\[\s*\"(\w+)\"\s*\]", text)
        for contract in files[file]
    }
    for text in source.values():
        used |= set(re.findall(r"load\(\"(\w+)\"\)\[\"(\w+)\"\]", text))
    # Those that dump and load a kind of records are found by its name.
    kinds = [*BY_NAME, *SAVED.values()]
    used |= {(file, kind) for file in ("archive_dump", "archive_load") for kind in kinds}
    # Those that find the records of a store are found by the store.
    used |= {("erasure", store) for store in STORES}
    unused = [pair for pair in STATEMENTS if pair not in used]
    assert unused == []


@pytest.mark.parametrize(
    ("contract", "name", "arguments", "index"),
    [
        ("history", "newest", ("t", "s", "a", 20), "events_(pkey|by_id)"),
        ("history", "page", ("t", "s", "a", 20, 0, 0), "events_(pkey|by_id)"),
        ("history", "count", ("t", "s", "a"), "events_(pkey|by_id)"),
        ("episodes", "recent", ("t", "a", None, 20, None, None), "events_of_agent"),
        (
            "episodes",
            "recent_in_session",
            ("t", "s", "a", None, 20, None, None, 0),
            "events_(pkey|by_id)",
        ),
        (
            "episodes",
            "between_in_session",
            ("t", "s", "a", "2020-01-01", "2040-01-01", 20, None, None, None, None, None),
            "events_(pkey|by_id)",
        ),
        (
            "episodes",
            "between",
            ("t", "a", "2020-01-01", "2040-01-01", 20, None, None, None, None, None, None, None),
            "events_of_agent",
        ),
        ("durable_log", "tail", ("t", "s", 20), "events_(pkey|by_id)"),
    ],
)
async def test_a_hot_statement_keeps_its_index(
    contract: str, name: str, arguments: tuple[Any, ...], index: str
) -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        await connection.execute(
            "INSERT INTO holdfast.sessions (tenant, id, agent, started_at) "
            "SELECT 't', CASE n WHEN 1 THEN 's' ELSE 's' || n END, 'a', now() "
            "FROM generate_series(1, 200) n"
        )
        await connection.execute(
            "INSERT INTO holdfast.events SELECT 't', s.key, 1, n, n::text, "
            "CASE n % 20 WHEN 1 THEN 'a' ELSE 'a' || n % 20 END, 'message', '', "
            "now() + n * interval '1 second', 'x' "
            "FROM holdfast.sessions s, generate_series(1, 100) n"
        )
        await connection.execute("ANALYZE")
        plan = await _plan(connection, load(contract)[name], arguments)
        assert re.search(index, plan), plan
        assert "Seq Scan on events" not in plan, plan


async def _plan(connection: Any, sql: str, arguments: tuple[Any, ...]) -> str:
    # EXPLAIN takes no parameters, so the values are written out; they are the test's own.
    for at in range(len(arguments), 0, -1):
        value = arguments[at - 1]
        text = "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"
        sql = sql.replace(f"${at}", text)
    return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {sql}"))


async def test_a_migration_may_take_longer_than_a_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = len(migrate.migrations())
    slow = migrate.Migration(last + 1, "slow", "SELECT pg_sleep(3)")
    whole = (*migrate.migrations(), slow)
    monkeypatch.setattr(migrate, "migrations", lambda: whole)
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, command_timeout_seconds=2)
        try:
            [row] = await engine.fetch_across(
                "SELECT max(version), current_setting('statement_timeout') "
                "FROM holdfast.migrations",
                safe=True,
            )
            assert tuple(row) == (last + 1, "2s")
        finally:
            await engine.aclose()
    async with empty_database() as url, connected(url) as borrowed:
        await borrowed.execute("SET statement_timeout = '2500ms'")
        await migrate.migrate(borrowed)
        assert await borrowed.fetchval("SHOW statement_timeout") == "2500ms"


async def test_a_process_of_an_earlier_version_appends_while_a_newer_one_has_migrated() -> None:
    first, later = datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 2, tzinfo=UTC)
    one = "SELECT * FROM holdfast.append_event($1, 's1', 'a', 'note', $2, '', $3, '{}')"
    some = (
        "SELECT * FROM holdfast.append_to_session("
        "$1, 's1', '{a}', '{note}', ARRAY[$2, 'e3'], ARRAY[''], ARRAY[$3, $3]::timestamptz[],"
        ' \'{"{}", "{}"}\')'
    )
    many = (
        "SELECT * FROM holdfast.append_events("
        "$1, '{s1}', '{a}', '{note}', ARRAY[$2], ARRAY[''], ARRAY[$3]::timestamptz[], '{\"{}\"}')"
    )
    embedded = many.replace("append_events", "append_embedded_events")[:-1] + ", '{1,2}', 2)"
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        assert await connection.fetch(one, "t", "e1", first) == [(1, 1, 1)]
        assert await connection.fetch(one, "t", "e1", later) == [(1, 1, 1)]
        assert await connection.fetch(some, "t", "e2", first) == [(1, 1, 2), (2, 1, 3)]
        assert await connection.fetch(some, "t", "e2", later) == [(1, 1, 2), (2, 1, 3)]
        assert await connection.fetch(many, "t", "e1", later) == [(1, 1, 1)]
        assert await connection.fetch(embedded, "t", "e1", later) == [(1, 1, 1)]
        rows = await connection.fetch("SELECT DISTINCT occurred_at FROM holdfast.events")
        assert rows == [(first,)]
