"""What is Postgres's own about cleanup marks: those of earlier versions are moved, and plans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.contracts.tasks.work import Work
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.engines.postgres.tasks.work import PostgresWork
from holdfast.values.lifecycle import TERMINAL
from holdfast.values.owners import owned_id
from tests.engines.postgres_database import connected, empty_database, generic_plan

pytestmark = pytest.mark.asyncio(loop_scope="session")
BEFORE = next(one.version for one in migrate.migrations() if one.name == "create_task_cleanup") - 1
TASK = (
    "INSERT INTO holdfast.tasks (tenant, id, owner, context_id, context_key, agent, metadata, "
    "max_attempts, submit_key, submit_digest, retry_of, created_at, state, updated_at, version, "
    "transitions, due_at) VALUES ('acme', $1, 'ana', 'c1', 1, 'writer', '{}', 5, '', '', '', "
    "now(), $2, now(), 2, 1, now())"
)


def _mark(**facts: Any) -> str:
    return json.dumps({"agent": "writer", "session": "c1"} | facts)


async def _as_before(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema and the marks of the version before."""
    states = {
        "holdfast.cleanup": {
            "ended": _mark(run=True, blobs=["b1"], files=["b2"]),
            "live": _mark(blobs=["b3"]),
            "gone": _mark(blobs=["b4", 7, "", "x" * 600]),
            # What a client could put there by the name of its context.
            "seen": '"no mark"',
            "zero": '{"agent": "writer", "session": "c1", "blobs": ["\\u0000"]}',
            "deep": "[" * 50_000 + "]" * 50_000,
            "odd": '{"agent": 1}',
        },
        "holdfast.files.0": {"ended": '["b5"]', "gone": '["b6"]', "odd": '"x"'},
        "holdfast.files.1": {"live": '["b7"]'},
        "c1": {"ended": _mark(blobs=["b8"])},
    }
    saved = {"holdfast.cleanup": {"live": _mark(blobs=["b9"]), "ended": '"\\u0000"'}}
    known = migrate.migrations()[:BEFORE]
    async with connected(url) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "migrations", lambda: known)
            patch.setattr(migrate, "function_files", lambda: ())
            await migrate.migrate(connection)
        for task_id, state in (("ended", "completed"), ("live", "working")):
            await connection.execute(TASK, task_id, state)
        for session, values in states.items():
            await connection.execute(
                "INSERT INTO holdfast.states (tenant, session_id, state, written_at) "
                "VALUES ('acme', $1, $2::text::jsonb, now())",
                *(session, json.dumps(values)),
            )
        for session, values in saved.items():
            await connection.execute(
                "INSERT INTO holdfast.state_snapshots (tenant, session_id, version, state) "
                "VALUES ('acme', $1, 1, $2)",
                *(session, json.dumps(values)),
            )


async def _keys(url: str) -> set[tuple[str, str]]:
    async with connected(url) as connection:
        sql = "SELECT session_id, jsonb_object_keys(state) FROM holdfast.states"
        return {(session, key) for session, key in await connection.fetch(sql)}


async def test_marks_that_were_kept_in_working_states_are_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with empty_database() as url:
        await _as_before(url, monkeypatch)
        engine = await Postgres.open(url, auto_migrate=True)
        try:
            ledger = Ledger(PostgresLedger(engine, tenant="acme"))
            assert await Work(PostgresWork(engine)).tenants("cleanup") == ["acme"]
            due = {
                (one.task_id, one.kind, one.ref, one.agent) for one in await ledger.claim_cleanup()
            }
            assert due == {
                ("ended", "run", owned_id("ana", "c1"), owned_id("ana", "writer")),
                ("ended", "blob", "b1", ""),
                ("ended", "file", "b2", ""),
                ("gone", "blob", "b4", ""),
                ("gone", "artifact", "b6", ""),
            }
            assert await _keys(url) == {
                ("holdfast.cleanup", "seen"),
                ("holdfast.cleanup", "zero"),
                ("holdfast.cleanup", "deep"),
                ("holdfast.cleanup", "odd"),
                ("holdfast.files.0", "odd"),
                ("c1", "ended"),
            }
            async with connected(url) as connection:
                await connection.execute("DELETE FROM holdfast.tasks")
            rest = {(one.task_id, one.ref) for one in await ledger.claim_cleanup()}
            assert {("live", "b3"), ("live", "b7"), ("live", "b9"), ("ended", "b5")} <= rest
        finally:
            await engine.aclose()


async def test_every_terminal_state_makes_marks_due() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        condition = await connection.fetchval(
            "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'task_ended'"
        )
    assert all(f"'{state}'" in condition for state in TERMINAL)


@pytest.mark.parametrize("name", ["claim", "of_context"])
async def test_a_sweep_reads_only_marks_that_are_due(name: str) -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        await connection.execute(
            "INSERT INTO holdfast.task_cleanup "
            "SELECT 'acme', n::text, 'artifact', 'b', '', 'ana', 'c1', "
            "CASE WHEN n % 1000 = 0 THEN now() END FROM generate_series(1, 20000) n"
        )
        for analysed in (False, True):
            if analysed:
                await connection.execute("ANALYZE")
            plan = await generic_plan(connection, load("ledger_cleanup")[name])
            assert "task_cleanup_due" in plan, plan
