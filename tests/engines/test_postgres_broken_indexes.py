"""A migration whose concurrent index was interrupted creates it again."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.engines.postgres import migrate
from holdfast.errors import HoldfastError
from tests.engines.postgres_database import connected, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

CREATES = """
    FROM pg_stat_activity
    WHERE query LIKE '%CREATE INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'
        AND datname = current_database() AND pid <> pg_backend_pid()"""
VALID = """
    SELECT i.indisvalid FROM pg_index i
    WHERE i.indexrelid = to_regclass('holdfast.sessions_listed')"""


async def test_an_index_that_an_interrupted_migration_left_is_created_again() -> None:
    async with (
        migrated_database() as url,
        connected(url) as migrating,
        connected(url) as writing,
        connected(url) as watching,
    ):
        await watching.execute("DROP INDEX holdfast.sessions_listed")
        await watching.execute("DELETE FROM holdfast.migrations WHERE version = 77")
        # The index waits for a transaction that has written to its table.
        transaction = writing.transaction()
        await transaction.start()
        await writing.execute("LOCK TABLE holdfast.sessions IN ROW EXCLUSIVE MODE")
        migration = asyncio.create_task(migrate.migrate(migrating))
        while not await watching.fetchval(f"SELECT count(*) {CREATES}"):
            await asyncio.sleep(0.01)
        await watching.execute(f"SELECT pg_terminate_backend(pid) {CREATES}")
        with pytest.raises(HoldfastError):
            await migration
        await transaction.rollback()
        assert await watching.fetchval(VALID) is False
        async with connected(url) as again:
            applied = await migrate.migrate(again)
        assert [one.label for one in applied] == ["0077_index_sessions_again"]
        assert await watching.fetchval(VALID) is True
