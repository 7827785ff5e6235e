"""``holdfast db login``: a login role for each kind of process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.logins import make_login
from holdfast.testing.postgres_server import PASSWORD
from holdfast.values.errors import HoldfastError
from holdfast.values.ids import new_ref
from tests.engines.postgres import server
from tests.engines.postgres_database import connected, empty_database

FIRST = "its first password"
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def url() -> AsyncIterator[str]:
    """A migrated database."""
    async with empty_database() as found:
        await (await Postgres.open(found)).aclose()
        yield found


async def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "holdfast.cli", *arguments],
        env={**kept, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


async def test_a_login_has_the_rights_of_its_processes_and_its_password(url: str) -> None:
    name = f"Lo'gin \"{new_ref()}"[:60]
    arguments = ("db", "login", name, "--for", "worker")
    refused = await _run(*arguments, DATABASE_URL=url)
    assert refused.returncode != 0
    assert "HOLDFAST_LOGIN_PASSWORD" in refused.stderr
    made = await _run(*arguments, DATABASE_URL=url, HOLDFAST_LOGIN_PASSWORD=FIRST)
    assert (made.returncode, "created the login" in made.stdout) == (0, True), made.stderr
    async with connected(url) as admin:
        database = await admin.fetchval("SELECT current_database()")
    where = {"host": "127.0.0.1", "port": server(18).port, "database": database, "user": name}
    connection = await asyncpg.connect(**where, password=FIRST)
    await connection.fetch("SELECT * FROM holdfast.tenants_due(1)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("TRUNCATE holdfast.events")
    await connection.close()
    changed = await _run(*arguments, DATABASE_URL=url, HOLDFAST_LOGIN_PASSWORD=PASSWORD)
    assert "changed the login" in changed.stdout
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(**where, password=FIRST)
    await (await asyncpg.connect(**where, password=PASSWORD)).close()


@pytest.mark.parametrize(
    ("name", "kind", "password", "says"),
    [
        ("postgres", "app", "x", "is a superuser or owns the schema"),
        ("holdfast_keeper", "app", "x", "is a superuser or owns the schema"),
        ("n" * 64, "app", "x", "name: must have 1 to 63 bytes"),
        (
            "somebody",
            "eraser",
            "x",
            "for: choose from app.*, not eraser",
        ),
        ("somebody", "app", "pässword", "password: must be printable ASCII characters"),
    ],
)
async def test_what_cannot_be_a_login_is_refused_and_nothing_is_changed(
    url: str, name: str, kind: str, password: str, says: str
) -> None:
    async with connected(url) as admin:
        with pytest.raises(HoldfastError, match=says):
            await make_login(admin, name, password, [kind])
        assert await admin.fetchval("SELECT to_regrole('somebody')") is None
        assert not await admin.fetchval(
            "SELECT rolcanlogin FROM pg_roles WHERE rolname = 'holdfast_keeper'"
        )
