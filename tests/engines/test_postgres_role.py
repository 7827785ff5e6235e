"""Which role the stores work as, and what it may do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import LiteralString

import asyncpg
import pytest
import pytest_asyncio

import holdfast
from holdfast import ChatMessage
from holdfast.contracts.history import History
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.errors import ConfigError, SchemaError
from holdfast.testing.postgres_server import PASSWORD
from holdfast.values.ids import new_ref
from tests.engines.postgres import server
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
COUNT: LiteralString = "SELECT count(*) FROM holdfast.events WHERE tenant = $1"


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with empty_database() as found:
        yield found


async def _login(url: str, rights: str = "") -> str:
    """How a new login role with some rights connects to the same database."""
    name = f"r_{new_ref().replace('-', '_').lower()}"
    async with connected(url) as admin:
        database = await admin.fetchval("SELECT current_database()")
        await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' {rights}")
    return server(18).url(user=name, database=database)


async def _role(engine: Postgres) -> str:
    [row] = await engine.fetch_across("SELECT current_user::text", safe=True)
    return str(row[0])


async def test_a_superuser_works_as_the_role_of_the_app_and_is_told_once(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        async with holdfast.open(url, settings=holdfast.Settings(max_connections=6)) as state:
            await state.history.append(
                holdfast.AgentId.parse("a"), ChatMessage.user("hello"), session_id="s1"
            )
    engine = await Postgres.open(url)
    assert (await _role(engine), engine.login) == ("holdfast_app", "postgres")
    forbidden: tuple[LiteralString, ...] = (
        "DROP TABLE holdfast.events",
        "TRUNCATE holdfast.events",
        "CREATE TABLE holdfast.mine ()",
        "ALTER TABLE holdfast.events ADD COLUMN mine int",
        "DELETE FROM holdfast.migrations",
    )
    for statement in forbidden:
        with pytest.raises(holdfast.HoldfastError, match=r"permission denied|must be owner"):
            await engine.fetch_across(statement, safe=False)
    await engine.aclose()
    assert len([one for one in caplog.messages if "was opened as postgres" in one]) <= 1


async def test_a_role_that_may_not_migrate_is_told_who_may(url: str) -> None:
    app = await _login(url)
    with pytest.raises(SchemaError, match="this role may not migrate") as caught:
        await Postgres.open(app)
    assert "as the owner of the database" in str(caught.value)


async def test_an_owner_who_is_in_the_role_works_as_the_role(url: str) -> None:
    async with empty_database() as other:
        await (await Postgres.open(other)).aclose()
    owner = await _owner(url, "IN ROLE holdfast_app")
    engine = await Postgres.open(owner)
    assert (await _role(engine), engine.login) == ("holdfast_app", _name(owner))
    await engine.fetch(COUNT, "default", safe=True)
    await engine.aclose()


async def test_an_owner_that_cannot_work_as_the_role_is_refused_unless_that_is_accepted(
    url: str,
) -> None:
    owner = await _owner(url)
    with pytest.raises(ConfigError, match=r"could see every tenant.*member of holdfast_app"):
        await Postgres.open(owner)
    engine = await Postgres.open(owner, allow_unsafe=True)
    assert (await _role(engine), engine.login) == (_name(owner), "")
    await engine.fetch(COUNT, "default", safe=True)
    await engine.aclose()


async def test_a_member_of_the_role_needs_nothing_else(url: str) -> None:
    await (await Postgres.open(url)).aclose()
    member = await _login(url, "IN ROLE holdfast_app")
    engine = await Postgres.open(member)
    assert await _role(engine) == _name(member)
    assert engine.login == ""
    await engine.aclose()


async def test_what_a_later_migration_adds_is_granted_too(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await Postgres.open(url)).aclose()
    later = migrate.Migration(
        len(migrate.migrations()) + 1, "add_table", "CREATE TABLE holdfast.later (tenant text);"
    )
    every = (*migrate.migrations(), later)
    monkeypatch.setattr(migrate, "migrations", lambda: every)
    engine = await Postgres.open(url, auto_migrate=True)
    assert await engine.fetch("SELECT FROM holdfast.later WHERE tenant = $1", "t", safe=True) == []
    await engine.aclose()


async def test_what_a_later_version_of_a_function_file_adds_is_granted_too(url: str) -> None:
    await (await Postgres.open(url)).aclose()
    async with connected(url) as admin:
        await admin.execute("REVOKE ALL ON FUNCTION holdfast.tenants_due(bigint) FROM holdfast_app")
    engine = await Postgres.open(url)
    assert await engine.fetch_across("SELECT * FROM holdfast.tenants_due(1)", safe=True) == []
    await engine.aclose()


async def test_a_superuser_through_a_pooler_or_on_a_borrowed_pool_is_refused(url: str) -> None:
    await (await Postgres.open(url)).aclose()
    with pytest.raises(ConfigError, match="could see every tenant"):
        await Postgres.open(url, pooler=True)
    async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool:
        with pytest.raises(ConfigError, match="could see every tenant"):
            await Postgres.from_pool(pool)


@pytest.mark.parametrize(
    ("role", "call"),
    [
        ("holdfast_worker", "tenants_due(1)"),
        ("holdfast_worker", "tenants_at_work(1)"),
        ("holdfast_worker", "tenants_with_news(1)"),
        ("holdfast_worker", "tenants_with_copies(1)"),
        ("holdfast_worker", "tenants_to_clean(1)"),
        ("holdfast_worker", "survey_work(1, NULL)"),
        ("holdfast_worker", "tenants_scheduled(1, NULL)"),
        ("holdfast_worker", "agents_to_index(1)"),
        ("holdfast_worker", "tenants_to_rewrap('k1', '', 1)"),
        ("holdfast_consolidator", "agents_to_index(1)"),
        ("holdfast_consolidator", "sessions_overtaken(1)"),
        ("holdfast_consolidator", "sessions_aside(1)"),
    ],
)
async def test_which_tenants_have_work_is_told_to_the_role_whose_work_it_is(
    url: str, role: str, call: LiteralString
) -> None:
    await (await Postgres.open(url)).aclose()
    ask: LiteralString = f"SELECT FROM holdfast.{call}"
    app = await Postgres.open(await _login(url, "IN ROLE holdfast_app"), max_connections=1)
    with pytest.raises(ConfigError, match="may not ask which tenants have work"):
        await app.fetch_across(ask, safe=True)
    await app.aclose()
    worker = await Postgres.open(await _login(url, f"IN ROLE {role}"), max_connections=1)
    await worker.fetch_across(ask, safe=True)
    # Names only: what is stored is shown to nobody without a tenant.
    with pytest.raises(ConfigError, match="for no tenant"):
        await worker.fetch_across("SELECT * FROM holdfast.tasks", safe=True)
    await worker.aclose()


async def test_a_reader_reads_its_tenant_and_writes_nothing(url: str) -> None:
    async with holdfast.open(url) as state:
        await state.history.append(
            holdfast.AgentId.parse("a"), ChatMessage.user("hello"), session_id="s1"
        )
    reader = await Postgres.open(await _login(url, "IN ROLE holdfast_reader"), max_connections=1)
    assert (await reader.fetch(COUNT, "default", safe=True))[0][0] == 1
    assert (await reader.fetch(COUNT, "other", safe=True))[0][0] == 0
    history = History(PostgresTranscripts(reader))
    with pytest.raises(ConfigError, match="permission denied"):
        await history.append(holdfast.AgentId.parse("a"), ChatMessage.user("more"), session_id="s1")
    with pytest.raises(ConfigError, match="permission denied"):
        await reader.fetch_across("SELECT holdfast.release_writer('x')", safe=True)
    await reader.aclose()


async def test_nothing_of_the_schema_is_a_superusers_or_passes_by_the_policies(url: str) -> None:
    await (await Postgres.open(url)).aclose()
    async with connected(url) as admin:
        owners = await admin.fetch(
            """
            SELECT DISTINCT pg_get_userbyid(o.owner) AS name FROM (
                SELECT nspowner AS owner FROM pg_namespace WHERE nspname = 'holdfast'
                UNION ALL
                SELECT relowner FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace
                UNION ALL
                SELECT proowner FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace
                UNION ALL
                SELECT typowner FROM pg_type WHERE typnamespace = 'holdfast'::regnamespace
            ) o
            """
        )
        assert [row["name"] for row in owners] == ["holdfast_keeper"]
        mighty = await admin.fetch(
            "SELECT rolname FROM pg_roles WHERE rolname ^@ 'holdfast_' AND rolname <> ALL($1)"
            " AND (rolbypassrls OR rolsuper OR rolcreaterole OR rolcanlogin)",
            ["holdfast_pooled"],
        )
        assert [row["rolname"] for row in mighty] == []


async def test_what_a_superuser_adds_belongs_to_the_owner_of_the_schema(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await _owner(url)
    await (await Postgres.open(owner, allow_unsafe=True)).aclose()
    later = migrate.Migration(
        len(migrate.migrations()) + 1, "add_table", "CREATE TABLE holdfast.later (tenant text);"
    )
    every = (*migrate.migrations(), later)
    monkeypatch.setattr(migrate, "migrations", lambda: every)
    await (await Postgres.open(url, auto_migrate=True)).aclose()
    async with connected(url) as admin:
        owners = await admin.fetch(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'holdfast'"
        )
        assert [row[0] for row in owners] == [_name(owner)]
        policy = "SELECT roles FROM pg_policies WHERE tablename = 'later' AND policyname = 'keeper'"
        assert await admin.fetchval(policy) == [_name(owner)]


async def _owner(url: str, rights: str = "") -> str:
    """The owner of the database, who is no superuser."""
    login = await _login(url, rights)
    async with connected(url) as admin:
        database = await admin.fetchval("SELECT current_database()")
        await admin.execute(f'ALTER DATABASE "{database}" OWNER TO {_name(login)}')
        await admin.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return login


def _name(url: str) -> str:
    """Who logs in by a URL."""
    return url.partition("://")[2].partition(":")[0].partition("@")[0]
