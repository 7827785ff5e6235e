"""Adopted tasks on Postgres: round trips, and writers and deleters at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.values.content import ChatMessage
from holdfast.values.errors import NotFoundError
from holdfast.values.tasks.reports import Report, StatusReport
from tests.engines.postgres import server
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_every_method_is_one_round_trip(tmp_path: Path) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with empty_database() as url, trips.between(listen, behind.folder / listen.name):
        away = url.replace(str(behind.folder), str(tmp_path))
        engine = await Postgres.open(away, auto_migrate=True, max_connections=1)
        ledger = Ledger(PostgresLedger(engine))

        async def counted(task_id: str) -> list[int]:
            working, one = StatusReport("working"), ChatMessage.assistant("one")
            end: list[Report] = [one, StatusReport("failed")]
            found = []
            for call in (
                lambda: ledger.adopt(task_id, agent="writer", reports=[working]),
                lambda: ledger.record(task_id, end, expected_version=2),
                lambda: ledger.delete(task_id),
            ):
                before = trips.count
                await call()
                found.append(trips.count - before)
            return found

        # The first time, the statements are prepared.
        await counted("t1")
        assert await counted("t2") == [1, 1, 1]
        await engine.aclose()


async def test_whatever_is_written_while_a_task_is_deleted_leaves_nothing_behind() -> None:
    async with empty_database() as url, connected(url) as connection:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=8)
        ledger = Ledger(PostgresLedger(engine))

        async def adopt(n: int) -> Any:
            hello = ChatMessage.user("hello")
            return await ledger.adopt(f"t{n}", agent="writer", session_id="c1", reports=[hello])

        async def report(n: int) -> None:
            for _ in range(5):
                task = await ledger.get(f"t{n}")
                version = task.version if task else 1
                said = ChatMessage.assistant("still here")
                await ledger.record(f"t{n}", [said], expected_version=version)

        for _ in range(5):
            await asyncio.gather(*(adopt(n) for n in range(4)))
            done = await asyncio.gather(
                *(report(n) for n in range(4)),
                *(ledger.append_feedback(f"t{n}", "good") for n in range(4)),
                *(ledger.delete(f"t{n}") for n in range(4)),
                ledger.clear_context("c1"),
                ledger.submit("writer", ChatMessage.user("mine"), session_id="c1"),
                return_exceptions=True,
            )
            wrong = [one for one in done if isinstance(one, BaseException)]
            assert {type(one) for one in wrong} <= {NotFoundError}, wrong
            await check_invariants(ledger)
            await ledger.clear_context("c1")
            for table in ("tasks", "task_events", "task_artifacts", "task_feedback"):
                left = await connection.fetchval(f"SELECT count(*) FROM holdfast.{table}")  # noqa: S608
                assert (table, left) == (table, 0)
            assert (await ledger.list_contexts()).contexts == []
        await engine.aclose()
