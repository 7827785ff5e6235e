"""The schema and its statements can be divided by tenant with Citus, also where there is none."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from holdfast.engines.postgres.tenancy import for_distributed_tenant
from tests.engines.postgres_database import connected, migrated_database
from tests.engines.test_postgres_policies import ACROSS, OPEN, PARTS, statements

pytestmark = pytest.mark.asyncio(loop_scope="session")

_TABLE = re.compile(
    r"(?:\bFROM|\bJOIN|\bUPDATE|\bUSING|,)\s+holdfast\.(\w+)\b(?!\s*\()(?:\s+(?:AS\s+)?(\w+))?"
)
_WORDS = {"where", "set", "on", "using", "join", "left", "cross", "order", "limit", "for", "offset"}
_DIVIDED = """
CREATE TEMP VIEW divided AS SELECT c.oid, c.relname, c.relkind, EXISTS (
    SELECT FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped) AS has_tenant
FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace
"""
_CALL = re.compile(r"\b(?:holdfast\.)?([a-z_0-9]+)\(")


@pytest_asyncio.fixture(loop_scope="session")
async def connection() -> AsyncIterator[Any]:
    """A connection to a database with the schema."""
    async with migrated_database() as url, connected(url) as found:
        await found.execute(_DIVIDED)
        yield found


async def test_tenant_is_a_column_of_every_key_and_mostly_the_first(connection: Any) -> None:
    keys = await connection.fetch(
        "SELECT i.indexrelid::regclass::text AS key, "
        "array_agg(a.attname::text ORDER BY k.at) AS of "
        "FROM pg_index i JOIN divided c ON c.oid = i.indrelid "
        "CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, at) "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number "
        "WHERE i.indisunique AND c.has_tenant GROUP BY i.indexrelid"
    )
    assert keys
    assert [row["key"] for row in keys if "tenant" not in row["of"]] == []
    # A key that is unique by itself may stand before it: then only a look-up by it takes the index.
    later = {row["key"]: row["of"] for row in keys if row["of"][0] != "tenant"}
    assert later == {"holdfast.sessions_keyed": ["key", "tenant"]}


async def test_foreign_keys_are_between_rows_of_one_tenant(connection: Any) -> None:
    keys = await connection.fetch(
        "SELECT k.conname, a.attname AS here, b.attname AS there FROM pg_constraint k "
        "JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1] "
        "JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1] "
        "WHERE k.contype = 'f' AND k.connamespace = 'holdfast'::regnamespace"
    )
    assert keys
    assert {(row["here"], row["there"]) for row in keys} == {("tenant", "tenant")}


async def test_tables_without_a_tenant_are_those_that_are_known(connection: Any) -> None:
    found = await connection.fetch(
        "SELECT relname FROM divided WHERE relkind = 'r' AND NOT has_tenant"
    )
    assert {row[0] for row in found} == set(OPEN)


async def test_a_statement_calls_functions_with_its_tenant_first(connection: Any) -> None:
    rows = await connection.fetch(
        "SELECT proname, bool_and(proargnames[1] IN ('in_tenant', 'the_tenant')) "
        "FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace GROUP BY 1"
    )
    by_tenant = {row[0]: row[1] for row in rows}
    wrong = []
    for file, name, sql in statements():
        if name in ACROSS.get(file, ()):
            continue
        called = set(re.findall(r"(?:SELECT|FROM|LATERAL|JOIN)\s+holdfast\.(\w+)\(", sql))
        wrong += [(file, name, one) for one in called - set(HELPERS) if not by_tenant[one]]
    assert wrong == []


HELPERS = {
    "now": "the clock",
    "advance_versions": "a sequence, which is on the coordinator",
}
"""Functions without a tenant, and why they run where the statement runs."""

EXEMPT = {
    ("archive_load", "states", "advance_versions"): "of an operator, who loads an archive",
    ("fallback_writes", "write", "nextval"): "of the hybrid, which is not distributed",
    ("ledger_submit", "submit_new", "nextval"): "not used where the database is distributed",
    ("ledger_submit", "submit_many_new", "nextval"): "not used where the database is distributed",
}
"""Calls that Citus refuses, and whose they are."""


async def test_every_table_of_a_statement_is_read_by_its_tenant(connection: Any) -> None:
    rows = await connection.fetch("SELECT relname FROM divided WHERE has_tenant")
    divided = {row[0] for row in rows}
    wrong = []
    for file, name, sql in statements():
        if name in ACROSS.get(file, ()) or (file, name) in PARTS:
            continue
        text = re.sub(r"--[^\n]*", "", sql)
        for table, alias in _TABLE.findall(text):
            if table not in divided:
                continue
            named = bool(alias) and alias.lower() not in _WORDS
            column = rf"\b{alias}\.tenant" if named else r"(?<![.\w])tenant"
            if not re.search(rf"{column} = \$1(?!\d)", text):
                wrong.append((file, name, alias or table))
    assert wrong == []


async def test_no_upsert_of_a_statement_calls_what_can_give_two_answers(connection: Any) -> None:
    rows = await connection.fetch(
        "SELECT proname, bool_or(provolatile <> 'i') FROM pg_proc "
        "WHERE pronamespace IN ('holdfast'::regnamespace, 'pg_catalog'::regnamespace) "
        "GROUP BY proname"
    )
    changes = {row[0]: row[1] for row in rows}
    wrong = []
    for file, name, sql in statements():
        if name in ACROSS.get(file, ()):
            continue
        for part in re.findall(r"DO UPDATE\s+SET(.*?)(?:\bRETURNING\b|\Z)", sql, re.DOTALL):
            wrong += [(file, name, one) for one in _CALL.findall(part) if changes.get(one)]
    assert set(wrong) <= set(EXEMPT)


async def test_no_write_of_a_statement_calls_what_is_volatile(connection: Any) -> None:
    """But the clock, which a distributed database reads once for a statement."""
    rows = await connection.fetch(
        "SELECT proname, bool_or(provolatile = 'v') FROM pg_proc "
        "WHERE pronamespace IN ('holdfast'::regnamespace, 'pg_catalog'::regnamespace) "
        "AND proname <> 'now' GROUP BY proname"
    )
    volatile = {row[0] for row in rows if row[1]}
    wrong = []
    for file, name, sql in statements():
        text = re.sub(r"--[^\n]*", "", sql)
        if name in ACROSS.get(file, ()) or not re.search(r"\b(INSERT|UPDATE|DELETE)\b", text):
            continue
        wrong += [(file, name, one) for one in _CALL.findall(text) if one in volatile]
    assert set(wrong) == set(EXEMPT)


async def test_signatures_use_types_that_every_node_has(connection: Any) -> None:
    found = await connection.fetch(
        "SELECT p.oid::regprocedure::text, c.relname FROM pg_proc p "
        "CROSS JOIN LATERAL unnest(p.proargtypes::oid[] || p.prorettype) AS used (oid) "
        "JOIN pg_type t ON t.oid = used.oid JOIN divided c ON c.oid = t.typrelid "
        "WHERE p.pronamespace = 'holdfast'::regnamespace AND c.relkind = 'r' "
        "AND NOT c.has_tenant"
    )
    assert list(found) == []


async def test_functions_in_sql_and_with_conditions_have_a_form_that_citus_plans(
    connection: Any,
) -> None:
    found = await connection.fetch(
        "SELECT name, distributed FROM holdfast.functions_by_tenant() WHERE is_alone"
    )
    assert found
    for _, text in found:
        await connection.execute(text)
    left = "SELECT count(*) FROM holdfast.functions_by_tenant() WHERE is_alone"
    assert await connection.fetchval(left) == 0


async def test_functions_that_draw_numbers_stay_on_the_coordinator(connection: Any) -> None:
    rows = await connection.fetch(
        "SELECT split_part(split_part(name, '.', 2), '(', 1), draws_no_number "
        "FROM holdfast.functions_by_tenant()"
    )
    moves = {row[0]: row[1] for row in rows}
    # It draws a number, it calls what does, it needs the index of words, and it does none of it.
    assert not moves["put_items"]
    assert not moves["submit_task"]
    assert not moves["search_events"]
    assert moves["put_state_at_version"]


async def test_what_is_for_all_tenants_has_a_form_and_stays_on_the_coordinator(
    connection: Any,
) -> None:
    rows = await connection.fetch(
        "SELECT p.proname, f.draws_no_number, f.distributed FROM holdfast.functions_by_tenant() f "
        "JOIN pg_proc p ON p.oid = f.oid"
    )
    found = {row[0]: row for row in rows}
    for name in ("tenants_due", "survey_work", "word_rows", "notify"):
        assert not found[name]["draws_no_number"]
        assert "LANGUAGE plpgsql" in found[name]["distributed"]


async def test_no_write_notifies_where_a_transaction_may_have_several_nodes(
    connection: Any,
) -> None:
    rows = await connection.fetch(
        "SELECT p.proname, coalesce(f.distributed, pg_get_functiondef(p.oid)) AS text "
        "FROM pg_proc p LEFT JOIN holdfast.functions_by_tenant() f ON f.oid = p.oid "
        "WHERE p.pronamespace = 'holdfast'::regnamespace"
    )
    assert {row["proname"] for row in rows if "pg_notify(" in row["text"]} == {"ring"}
    rings = [(file, name) for file, name, sql in statements() if "holdfast.ring(" in sql]
    assert rings == [("ledger_work", "ring")]


async def test_the_server_can_prepare_the_distributed_form_of_every_statement(
    connection: Any,
) -> None:
    forms = "SELECT distributed FROM holdfast.functions_by_tenant() WHERE is_alone"
    for [text] in await connection.fetch(forms):
        await connection.execute(text)
    changed = 0
    for _, _, sql in statements():
        if "/* alone: */" not in sql and "/* distributed: " not in sql:
            continue
        form = for_distributed_tenant(sql)
        assert "alone:" not in form
        assert "distributed:" not in form
        await connection.prepare(form)
        changed += 1
    assert changed > 0
