"""Large values that a caller waits for are stored as they are: to compress one takes longer."""

from __future__ import annotations

import pytest

from tests.engines.postgres_database import connected, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAIN = {
    ("blob_chunks", "data"),
    ("checkpoint_values", "data"),
    ("checkpoint_writes", "data"),
    ("states", "state"),
    ("task_events", "body"),
}


async def test_states_checkpoints_steps_and_blobs_are_not_compressed() -> None:
    async with migrated_database() as url, connected(url) as connection:
        rows = await connection.fetch(
            "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r' "
            "AND a.attstorage = 'e'"
        )
    assert {tuple(row) for row in rows} >= PLAIN
