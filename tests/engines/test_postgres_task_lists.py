"""Lists of many tasks read a page of an index, not every task of the tenant."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.values.content import ChatMessage
from holdfast.values.tasks.new_task import NewTask
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
_SQL = load("ledger_client")
_OPERATIONS, _CONTEXTS = load("ledger_operations"), load("ledger_context")


def _listed(states: list[str] | None, owner: str | None = None) -> tuple[Any, ...]:
    """The arguments of a list without a filter, or by states or owner."""
    return ("acme", owner, *[None] * 3, states, *[None] * 6, 50, 1, False, False, True, True)


async def test_lists_of_many_tasks_read_no_more_than_a_page() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        ledger = Ledger(PostgresLedger(engine, tenant="acme"))
        for _ in range(5):
            await ledger.submit_many([NewTask("a", ChatMessage.user("x"))] * 1000)
        await ledger.cancel((await ledger.list(limit=1)).tasks[0].id)
        for owner in ("ana", "ben"):
            mine = [NewTask("a", ChatMessage.user("x"))] * 100
            await ledger.submit_many(mine, owner=owner)
        async with as_keeper(engine) as connection:
            await connection.execute("ANALYZE")
        for sql, arguments, index in (
            (_SQL["list"], _listed(None), "tasks_listed"),
            (_SQL["list"], _listed(["failed", "canceled"]), "tasks_by_rare_state"),
            (_SQL["list"], _listed(None, "ana"), "tasks_listed_by_owner"),
            (_OPERATIONS["versions"], ("acme", None, 100), "tasks_listed"),
            (_CONTEXTS["list"], ("acme", "ana", None, "", "", 50, True), "task_contexts_listed"),
        ):
            rows = await engine.fetch(f"EXPLAIN {sql}", *arguments, safe=True)
            plan = "\n".join(row[0] for row in rows)
            assert index in plan
            assert "Seq Scan on tasks" not in plan
        await engine.aclose()
