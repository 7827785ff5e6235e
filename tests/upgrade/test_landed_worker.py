"""A process of the landed version that runs while another one migrates."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from holdfast.engines.postgres import migrate
from tests.engines.postgres_database import connected
from tests.upgrade.making import STATEMENTS
from tests.upgrade.restoring import LANDED, landed_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
HEAD = re.compile(r"^-- name: (\w+\.\w+)\n", re.MULTILINE)
COLUMNS = """
SELECT c.relname AS of, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS must_be_given
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p', 'v')
    AND a.attnum > 0 AND NOT a.attisdropped
"""


BY_NAME = {"blob.open", "blob_index.take_expired"}
"""``SELECT b.*, …``: rows are read by the names of columns, and new ones may be in between."""


def statements() -> dict[str, str]:
    """What processes of the landed version send, by name."""
    parts = HEAD.split(STATEMENTS.read_text(encoding="utf-8"))
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: sql.strip().rstrip(";") for name, sql in found.items()}


async def shape(connection: Any, sql: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The types of a statement's parameters, and the columns of its rows."""
    made = await connection.prepare(sql)
    given = [one.name for one in made.get_parameters()]
    return given, [(one.name, one.type.name) for one in made.get_attributes()]


async def test_its_statements_take_and_return_the_same_after_the_migration() -> None:
    async with landed_database() as url, connected(url) as worker, connected(url) as other:
        before = {name: await shape(worker, sql) for name, sql in statements().items()}
        assert len(before) > 150
        await migrate.migrate(other)
        wrong = []
        for name, sql in statements().items():
            try:
                given, columns = await shape(worker, sql)
            except Exception as error:  # noqa: BLE001 - all of them, at once
                wrong.append(f"{name}: {error}")
                continue
            if name in BY_NAME:
                columns = [one for one in columns if one in before[name][1]]
            # A column more is not read.
            if given != before[name][0] or columns[: len(before[name][1])] != before[name][1]:
                wrong.append(f"{name}: {before[name]} is now {(given, columns)}")
        assert wrong == [], "give what has changed a new name, and keep the old one"


async def test_the_migration_keeps_every_column_and_adds_none_that_must_be_given() -> None:
    async with landed_database() as url, connected(url) as connection:
        before = {(row["of"], row["name"]): row for row in await connection.fetch(COLUMNS)}
        await migrate.migrate(connection)
        after = {(row["of"], row["name"]): row for row in await connection.fetch(COLUMNS)}
    gone = [one for one, row in before.items() if one not in after or after[one][2] != row[2]]
    assert gone == [], "processes of the landed version use these columns"
    tables = {table for table, _ in before}
    asked = [
        one
        for one, row in after.items()
        if one[0] in tables and row["must_be_given"] and not (one in before and before[one][3])
    ]
    assert asked == [], "processes of the landed version do not fill these columns: add a default"


async def test_one_that_opens_after_the_migration_refuses_the_schema() -> None:
    """It compares the highest version that is applied with its own, and raises SchemaError."""
    async with landed_database() as url, connected(url) as connection:
        sent = statements()
        for newer in (False, True):
            if newer:
                await migrate.migrate(connection)
            assert await connection.fetchval(sent["migrate.is_there"])
            applied = await connection.fetch(sent["migrate.applied"])
            assert (max(row["version"] for row in applied) != LANDED) is newer
            # It also compares the checksum of each of its own.
            own = {one.version: one.sha256 for one in migrate.migrations()[:LANDED]}
            assert {row[0]: row["sha256"] for row in applied if row[0] <= LANDED} == own


async def test_its_recall_is_refused_after_the_migration_and_its_appends_are_not() -> None:
    """It reports an undefined table as SchemaError; what it appends is indexed by others."""
    async with landed_database() as url, connected(url) as worker, connected(url) as other:
        await migrate.migrate(other)
        sent = statements()
        waiting = "SELECT count(*) FROM holdfast.unindexed_events WHERE agent = 'late/agent'"
        now = datetime(2026, 1, 2, tzinfo=UTC)
        await worker.fetch(
            sent["history.append_one"],
            *("default", "s9", "late/agent", "message", "m9", "", now, '{"role": "user"}'),
        )
        assert await other.fetchval(waiting) == 1
        ranges = ([1], [1], [1])
        for sql, args in (
            (sent["indexing.index"], ("default", "late/agent", *ranges, *[[]] * 6)),
            ("SELECT * FROM holdfast.event_lexemes WHERE tenant = $1", ("default",)),
            (
                "SELECT * FROM holdfast.search_words($1, $2, $3, 5, NULL, NULL, NULL, NULL, 1, 1)",
                ("default", "late/agent", ["tide"]),
            ),
        ):
            with pytest.raises(asyncpg.UndefinedTableError, match="upgrade holdfast"):
                await worker.fetch(sql, *args)
        assert await other.fetchval(waiting) == 1
