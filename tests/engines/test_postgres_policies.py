"""The database itself shows a statement the rows of its tenant and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.resources import files
from typing import LiteralString

import pytest
import pytest_asyncio

from holdfast import AgentId, ChatMessage
from holdfast.contracts.history import History
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.admin import PostgresAdmin
from holdfast.engines.postgres.capabilities import read_capabilities
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tenancy import for_tenant
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.values.errors import ConfigError, EngineError
from tests.engines.postgres_database import as_keeper, connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
OTHER: LiteralString = "SELECT body FROM holdfast.events WHERE $1 <> ''"

OPEN = {
    "event_blocks": "the words of an agent, by a key that only event_agents tells",
    "event_numbers": "places in the log, by keys that only event_agents and sessions tell",
    "event_speakers": "counts of an agent, by a key that only event_agents tells",
    "function_files": "what is installed",
    "migrations": "what is installed",
    "notice_key": "the key of the digests in notices",
    "task_edges": "the states of tasks, the same for all",
}
"""Tables without a tenant, and why that shows nobody's rows to another."""

ACROSS = {
    "admin": {"missing_rights", "stale_tables", "unconfined"},
    "backlog": {"backlog"},
    "blob": {"purge"},
    "channel": {"echo", "notice_key", "purge"},
    "checkpoints": {"purge"},
    "data_keys": {"tenants"},
    "distribution": set(load("distribution")),
    "durable_log": {"behind", "release", "unsettled"},
    "embedding_queue": {"tenants_waiting"},
    "engine": {"ping", "settings"},
    "episodes": {"purge_sessions"},
    "fallback_writes": {"waiting"},
    "indexes": set(load("indexes")),
    "indexing": {"free_blocks", "queue", "unmerged", "waiting"},
    "items": {"purge", "purge_namespaces"},
    "ledger_push": {"purge"},
    "ledger_work": set(load("ledger_work")),
    "long_term": {"purge"},
    "migrate": set(load("migrate")),
    "roles": set(load("roles")),
    "schedules": {"scheduled"},
    "retention": set(load("retention")),
    "scrub": set(load("scrub")),
    "session_moves": {"any", "pending", "skip_empty", "unassigned"},
    "short_term": {"purge"},
    "tenants": {"tenants"},
    "vector": {"purge_collections"},
}
"""Statements that are for no one tenant: of the owner of the schema, or calls of its functions."""

PARTS = {("checkpoints", "read"), ("checkpoints", "read_one")}
"""What is never sent by itself: statements that are checked here take the place of a part of it."""


@pytest_asyncio.fixture(loop_scope="session")
async def engine() -> AsyncIterator[Postgres]:
    """A database with a message of each of two tenants."""
    async with empty_database() as url:
        engine = await Postgres.open(url, max_connections=4)
        for tenant in ("acme", "globex"):
            history = History(PostgresTranscripts(engine, tenant=tenant))
            await history.append(ANA, ChatMessage.user(f"of {tenant}"), session_id="s1")
        yield engine
        await engine.aclose()


def statements() -> list[tuple[str, str, LiteralString]]:
    names = sorted(
        file.name.removesuffix(".sql")
        for file in files("holdfast.engines.postgres").joinpath("sql").iterdir()
    )
    return [(file, name, sql) for file in names for name, sql in load(file).items()]


async def test_every_statement_is_for_the_tenant_in_its_first_parameter_or_for_none(
    engine: Postgres,
) -> None:
    wrong = []
    async with as_keeper(engine) as connection:
        for file, name, sql in statements():
            if name in ACROSS.get(file, ()) or (file, name) in PARTS:
                continue
            await connection.execute(f"PREPARE probed AS {for_tenant(sql)}")
            first = await connection.fetchval(
                "SELECT parameter_types[1]::text FROM pg_prepared_statements WHERE name = 'probed'"
            )
            await connection.execute("DEALLOCATE probed")
            if first != "holdfast.for_tenant":
                wrong.append((file, name, first))
    assert wrong == []


async def test_every_table_with_a_tenant_has_a_policy_and_every_view_is_its_callers(
    engine: Postgres,
) -> None:
    async with as_keeper(engine) as connection:
        tables = await connection.fetch(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, "
            "(SELECT array_agg(p.polname::text ORDER BY p.polname) FROM pg_policy p "
            " WHERE p.polrelid = c.oid) FROM pg_class c "
            "WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p')"
        )
        views = await connection.fetch(
            "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace "
            "AND c.relkind = 'v' AND NOT coalesce(c.reloptions, '{}') @> '{security_invoker=true}'"
        )
    assert {row[0] for row in tables if not row[1]} == set(OPEN)
    assert {tuple(row[2]) for row in tables if row[1]} == {("keeper", "tenant")}
    assert list(views) == []


async def test_functions_that_run_as_their_owner_look_names_up_in_no_schema_of_a_caller(
    engine: Postgres,
) -> None:
    async with as_keeper(engine) as connection:
        found = await connection.fetch(
            "SELECT p.proname, p.proconfig::text, "
            "has_function_privilege('public', p.oid, 'EXECUTE') "
            "FROM pg_proc p WHERE p.pronamespace = 'holdfast'::regnamespace AND p.prosecdef"
        )
    assert len(found) >= 18
    assert {row[1] for row in found} == {'{"search_path=pg_catalog, pg_temp"}'}
    assert {row[2] for row in found} == {False}


async def test_a_statement_that_forgets_its_condition_sees_its_own_tenant_alone(
    engine: Postgres,
) -> None:
    for tenant, other in (("acme", "globex"), ("globex", "acme")):
        [row] = await engine.fetch(OTHER, tenant, safe=True)
        assert f"of {tenant}" in row[0]
        assert other not in row[0]
        update: LiteralString = "UPDATE holdfast.events SET run = 'x' WHERE $1 <> '' RETURNING id"
        assert len(await engine.fetch(update, tenant, safe=False)) == 1
        gone: LiteralString = "DELETE FROM holdfast.boards WHERE tenant <> $1 RETURNING id"
        assert await engine.fetch(gone, tenant, safe=False) == []


async def test_a_statement_for_no_tenant_fails_and_reads_nothing(engine: Postgres) -> None:
    statements: tuple[LiteralString, ...] = (
        "SELECT count(*) FROM holdfast.events",
        "SELECT * FROM holdfast.task_records WHERE tenant = 'acme'",
        "UPDATE holdfast.events SET run = 'x' WHERE tenant = 'acme'",
        "DELETE FROM holdfast.events WHERE tenant = 'acme'",
        "INSERT INTO holdfast.channels (tenant, name, newest) VALUES ('acme', 'c', 1)",
    )
    for sql in statements:
        with pytest.raises(ConfigError, match="for no tenant"):
            await engine.fetch_across(sql, safe=False)
    # Neither does one that follows a tenant's statement on the same connection.
    async with engine.connection(writes=False, tenant="acme") as connection:
        await connection.fetch(OTHER, "acme")
        with pytest.raises(Exception, match="for no tenant"):
            await connection.bare.fetch("SELECT count(*) FROM holdfast.events")


async def test_a_row_of_another_tenant_is_not_written(engine: Postgres) -> None:
    sql: LiteralString = (
        "INSERT INTO holdfast.channels (tenant, name, newest) VALUES ($2, 'c', 1 + length($1))"
    )
    with pytest.raises(ConfigError, match="row-level security policy"):
        await engine.fetch(sql, "acme", "globex", safe=False)
    move: LiteralString = "UPDATE holdfast.sessions SET tenant = $2 WHERE tenant = $1"
    with pytest.raises(ConfigError, match="row-level security policy"):
        await engine.fetch(move, "acme", "globex", safe=False)


async def test_the_role_of_the_app_can_neither_drop_nor_evade_a_policy(engine: Postgres) -> None:
    statements: tuple[LiteralString, ...] = (
        "DROP POLICY tenant ON holdfast.events",
        "ALTER TABLE holdfast.events DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE holdfast.events NO FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON holdfast.events USING (true)",
        "CREATE OR REPLACE FUNCTION holdfast.no_tenant() RETURNS text LANGUAGE sql AS 'SELECT 1'",
        "ALTER DOMAIN holdfast.for_tenant DROP CONSTRAINT for_tenant_check",
        "TRUNCATE holdfast.events",
    )
    for sql in statements:
        with pytest.raises(ConfigError, match=r"must be owner|permission denied"):
            await engine.fetch_across(sql, safe=False)
    acme = engine.connection(writes=False, tenant="acme")
    async with acme as connection, connection.transaction():
        await connection.bare.execute("SET LOCAL row_security = off")
        with pytest.raises(Exception, match="affected by row-level security"):
            await connection.fetch(OTHER, "acme")


async def test_a_connection_of_one_tenant_refuses_a_statement_of_another(engine: Postgres) -> None:
    async with engine.connection(writes=False, tenant="acme") as connection:
        with pytest.raises(EngineError, match="given to another"):
            await connection.fetch(OTHER, "globex")
        with pytest.raises(EngineError, match="given to another"):
            await connection.fetch("SELECT 1")
        assert len(await connection.fetch(OTHER, "acme")) == 1


async def test_a_tenants_statement_is_refused_without_a_tenant(engine: Postgres) -> None:
    with pytest.raises(EngineError, match="for_tenant"):
        await engine.fetch(OTHER, "", safe=True)
    with pytest.raises(ValueError, match="without a tenant"):
        await engine.fetch("SELECT 1", "acme", safe=True)


async def test_a_table_of_a_later_migration_is_confined_when_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = len(migrate.migrations()) + 1
    later = migrate.Migration(
        number, "add", "CREATE TABLE holdfast.later AS SELECT 'globex' AS tenant;"
    )
    every = (*migrate.migrations(), later)
    async with empty_database() as url:
        await (await Postgres.open(url)).aclose()
        monkeypatch.setattr(migrate, "migrations", lambda: every)
        engine = await Postgres.open(url, auto_migrate=True)
        sql: LiteralString = "SELECT tenant FROM holdfast.later WHERE $1 <> ''"
        assert await engine.fetch(sql, "acme", safe=True) == []
        assert len(await engine.fetch(sql, "globex", safe=True)) == 1
        await engine.aclose()
        async with connected(url) as connection:
            assert await connection.fetchval("SELECT holdfast.confine_tables()") == 0


async def test_it_is_told_whether_the_policies_hold_for_a_role(engine: Postgres) -> None:
    assert (engine.capabilities.role, engine.capabilities.confined) == ("holdfast_app", True)
    async with as_keeper(engine) as connection:
        found = await read_capabilities(connection)
        assert (found.role, found.confined) == ("postgres", False)
        admin = PostgresAdmin(connection)
        assert await admin.problems() == []
        await connection.execute("ALTER TABLE holdfast.boards NO FORCE ROW LEVEL SECURITY")
        [problem] = await admin.problems()
        assert "holdfast.boards shows a statement the rows of all tenants" in problem
        assert await connection.fetchval("SELECT holdfast.confine_tables()") == 1
        assert await admin.problems() == []
