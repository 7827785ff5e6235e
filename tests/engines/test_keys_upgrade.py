"""Keys that were made before keys had scopes."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import Settings
from holdfast.contracts.keys import key_digest, new_key_text
from holdfast.engines.postgres import migrate
from holdfast.ops import KeyScope
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_key_from_before_keeps_working_as_its_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [one.name for one in migrate.migrations()]
    before = migrate.migrations()[: names.index("add_key_scopes")]
    text = new_key_text("acme")
    async with empty_database() as url:
        async with connected(url) as connection:
            with monkeypatch.context() as earlier:
                earlier.setattr(migrate, "migrations", lambda: before)
                earlier.setattr(migrate, "function_files", lambda: ())
                await migrate.migrate(connection)
            await connection.execute(
                "INSERT INTO holdfast.api_keys (tenant, digest, id, owner, name, created_at) "
                "VALUES ('acme', $1, 'k1', 'ana', '\"\"', now())",
                key_digest(text),
            )
        async with holdfast.open(url, settings=Settings(auto_migrate=True)) as state:
            found = await state.keys.verify(text)
            assert found is not None
            assert (found.owner, found.scope) == ("ana", KeyScope.OWNER)
            assert (found.expires_at, found.last_used_at) == (None, None)
            acme = state.for_tenant("acme")
            rotated = await acme.keys.rotate("k1")
            assert await state.keys.verify(text) is None
            assert await state.keys.verify(rotated.text) == rotated.key
