"""No statement loses an index below the policies, as comparisons do that may tell of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import asyncpg
import msgspec
import pytest

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tenancy import for_tenant
from tests.engines.postgres_database import as_keeper, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
FILES = sorted(
    one.name.removesuffix(".sql")
    for one in files("holdfast.engines.postgres").joinpath("sql").iterdir()
    if one.name.endswith(".sql")
)
# What a statement fails with that is for all tenants: its first parameter is another.
_ACROSS = (
    asyncpg.UndefinedFunctionError,
    asyncpg.DatatypeMismatchError,
    asyncpg.CannotCoerceError,
    asyncpg.InsufficientPrivilegeError,
)


def _conditions(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the index of each scan, with each column that it compares with a parameter."""
    if "Index Cond" in plan:
        text = plan["Index Cond"]
        for part in text[1:-1].split(") AND (") if ") AND (" in text else [text[1:-1]]:
            # Whether another table is read first, the planner chooses.
            if not re.search(r"[=<>] \(?\w+\.\w+\b(?!\()", part):
                yield plan["Index Name"], re.split(r"[ ,)]", part.strip("("))[0]
    for one in plan.get("Plans", ()):
        yield from _conditions(one)


async def _plan(connection: Any, name: str, sql: str) -> dict[str, Any]:
    count = len((await connection.prepare(sql)).get_parameters())
    given = ", ".join(["'default'", *["NULL"] * (count - 1)])
    await connection.execute(f'PREPARE "{name}" AS {sql}')
    [(text,)] = await connection.fetch(f'EXPLAIN (FORMAT JSON) EXECUTE "{name}" ({given})')
    await connection.execute(f'DEALLOCATE "{name}"')
    found: dict[str, Any] = msgspec.json.decode(text)[0]["Plan"]
    return found


async def test_no_statement_loses_a_condition_of_an_index_below_the_policies() -> None:
    lost, compared = {}, 0
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=2)
        async with as_keeper(engine) as keeper, engine.connection(writes=False) as lent:
            connections = (lent.bare, keeper)
            for one in connections:
                await one.execute(
                    "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"
                )
            indexes = "SELECT indexname, tablename FROM pg_indexes"
            table_of = dict(await keeper.fetch(indexes))
            for file in FILES:
                for name, sql in load(file).items():
                    if "$1" not in sql:
                        continue
                    try:
                        plans = [
                            await _plan(one, f"{file} {name}", for_tenant(sql))
                            for one in connections
                        ]
                    except _ACROSS:
                        continue
                    ours, theirs = (
                        {(table_of[index], column) for index, column in _conditions(one)}
                        for one in plans
                    )
                    compared += 1
                    if missing := theirs - ours:
                        lost[file, name] = missing
        await engine.aclose()
    assert lost == {}
    assert compared > 250
