"""The schema as it is, read from the catalog of a migrated database."""

from __future__ import annotations

from typing import Any

from holdfast.engines.postgres.migrate import migrate
from tests.engines.postgres_database import connected, empty_database

HEAD = """-- The schema as it is after all migrations; the functions are in functions/*.sql.
-- `make docs` writes this file, and a test checks it.
"""
TABLES = """
SELECT c.oid, c.relname, c.reloptions FROM pg_class c
WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r' ORDER BY c.relname COLLATE "C"
"""
COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
    l.collname AS collation, pg_get_expr(d.adbin, d.adrelid) AS default,
    a.attgenerated <> '' AS generated, a.attidentity <> '' AS identity
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation AND l.collname <> 'default'
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
CONSTRAINTS = """
SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = $1 AND contype IN ('p', 'u', 'f', 'c')
ORDER BY contype = 'f', contype = 'c', contype <> 'p', conname COLLATE "C"
"""
INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = $1
    AND NOT EXISTS (
        SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype <> 'f')
ORDER BY c.relname COLLATE "C"
"""
TRIGGERS = """
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal
ORDER BY tgname COLLATE "C"
"""
TYPES = """
SELECT c.oid, c.relname FROM pg_class c
WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'c' ORDER BY c.relname COLLATE "C"
"""
VIEWS = """
SELECT c.relname, pg_get_viewdef(c.oid) FROM pg_class c
WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'v' ORDER BY c.relname COLLATE "C"
"""
FUNCTIONS = """
SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments,
    pg_get_function_result(p.oid) AS result
FROM pg_proc p WHERE p.pronamespace = 'holdfast'::regnamespace
ORDER BY p.proname COLLATE "C", 2
"""


async def migrated_schema() -> str:
    """The same for a database that is made, migrated and dropped again."""
    async with empty_database() as url, connected(url) as connection:
        await migrate(connection)
        return await schema_sql(connection)


async def schema_sql(connection: Any) -> str:
    """The text of ``schema.sql`` for the database of a connection."""
    parts = [HEAD]
    for kind in await connection.fetch(TYPES):
        columns = [_column(row) for row in await connection.fetch(COLUMNS, kind["oid"])]
        parts.append(_block(f"CREATE TYPE holdfast.{kind['relname']} AS", columns))
    for table in await connection.fetch(TABLES):
        lines = [_column(row) for row in await connection.fetch(COLUMNS, table["oid"])]
        lines += [row[0] for row in await connection.fetch(CONSTRAINTS, table["oid"])]
        options = f" WITH ({', '.join(table['reloptions'])})" if table["reloptions"] else ""
        parts.append(_block(f"CREATE TABLE holdfast.{table['relname']}", lines, options))
        for query in (INDEXES, TRIGGERS):
            rows = await connection.fetch(query, table["oid"])
            parts += ["".join(f"{row[0]};\n" for row in rows)] if rows else []
    for name, definition in await connection.fetch(VIEWS):
        text = "\n".join(line.rstrip() for line in definition.splitlines())
        parts.append(f"CREATE VIEW holdfast.{name} AS\n{text}\n")
    functions = [
        f"--   {row['proname']}({row['arguments']}) RETURNS {row['result']}\n"
        for row in await connection.fetch(FUNCTIONS)
    ]
    parts.append("-- Functions:\n" + "".join(functions))
    return "\n".join(parts)


def _block(head: str, lines: list[str], options: str = "") -> str:
    inside = ",\n".join(f"    {line}" for line in lines)
    return f"{head} (\n{inside}\n){options};\n"


def _column(row: Any) -> str:
    words = [row["name"], row["type"]]
    if row["collation"]:
        words.append(f'COLLATE "{row["collation"]}"')
    if row["required"]:
        words.append("NOT NULL")
    if row["generated"]:
        words.append(f"GENERATED ALWAYS AS ({row['default']}) STORED")
    elif row["identity"]:
        words.append("GENERATED ALWAYS AS IDENTITY")
    elif row["default"]:
        words.append(f"DEFAULT {row['default']}")
    return " ".join(words)
