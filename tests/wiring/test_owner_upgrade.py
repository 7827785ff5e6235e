"""A database of before owners were kept apart: each session moves to its owner, once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import App, ChatMessage, Settings, State, TaskContext, TaskState
from holdfast.engines.postgres import engine, migrate, session_log, short_term
from holdfast.engines.postgres.tasks import client, lease, progress, work
from holdfast.errors import ConflictError, NotFoundError
from holdfast.runtime.remember import Remembering
from holdfast.runtime.ticks import Ticks
from holdfast.values.ids import new_ref
from holdfast.wiring import front_door
from holdfast.wiring.doctor import examine
from tests.engines.postgres_database import connected, empty_database
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
BEFORE = 20
"""The last migration before owners were kept apart."""
APPEND_BEFORE = (
    "SELECT *, NULL::timestamptz FROM holdfast.append_event($1, $2, $3, $4, $5, $6, $7, $8) "
    "WHERE coalesce($9::text, '') IS NOT NULL"
)
"""How an event was appended then, without what a filter sees of it."""
SUBMIT_BEFORE = (
    "SELECT * FROM holdfast.submit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
    "$12, $13, $14, $15, $16, $17, $18, $19, $20, $21) "
    "WHERE coalesce($22::bigint, 0) = 0 AND coalesce($23::text, $24::text, '') = ''"
)
"""How a task was submitted then, without priority, key and the name of who did it."""
CLAIM_BEFORE = (
    "SELECT *, '' AS handler_version "
    "FROM holdfast.claim_tasks($1, $2, $3::text[], $4, $5, $6, $7) "
    "WHERE $8::jsonb IS NULL AND coalesce($9::text, $10::text, '') IS NOT NULL"
)
WRITE_BEFORE = """
INSERT INTO holdfast.states AS s (tenant, session_id, state, ttl_seconds, written_at)
SELECT $1, $2, $3::text::jsonb, $4::double precision, holdfast.now()
WHERE coalesce($7::int, 0) = 0
ON CONFLICT (tenant, session_id) DO UPDATE SET
    state = CASE WHEN $6 THEN excluded.state ELSE (s.state - $5::text[]) || excluded.state END,
    version = nextval('holdfast.state_versions'), written_at = excluded.written_at
RETURNING s.version
"""
SURVEY_BEFORE = (
    "SELECT 'due', tenant, NULL::float8 FROM holdfast.tasks WHERE state = 'submitted' "
    "AND due_at <= holdfast.now() AND tenant = ANY ($2::text[]) LIMIT $1"
)
LEAVE_BEFORE = """
SELECT * FROM holdfast.transition_task(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
WHERE coalesce($16::text, $17::text, $19::text, '') IS NOT NULL AND $18::text[] = '{}'
"""
STEP_BEFORE = """
SELECT *, NULL::timestamptz AS out_started_at
FROM holdfast.record_task_step($1, $2, $3, $4, $5, $6, $7, $8, $9)
WHERE coalesce($10::double precision, 0) IS NOT NULL
"""
"""How tasks were submitted and worked on then, without results, children and times."""


def _app() -> App:
    app = App("clerk")

    @app.handler
    async def work(task: TaskContext) -> str:
        async def notes() -> None:
            await task.state.update({"draft": "half of it"})
            await task.history.append(ChatMessage.assistant("I remember the harbour"))
            await task.memory.record("decision", {"harbour": "north"})

        await task.step("notes", notes)
        answer = await task.ask("Which pier?")
        hits = await task.memory.recall("harbour")
        found = {
            "state": await task.state.get(),
            "history": [one.text for one in await task.history.messages()],
            "recalled": sorted(one.event.type for one in hits),
        }
        return f"{answer.text}: {found}"

    return app


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with empty_database() as found:
        yield found


@pytest.fixture(params=["postgres", "hybrid"])
def wiring(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How the state is opened; with Redis nothing is flushed before the upgrade."""
    redis = {"redis": valkey().url, "background": False} if request.param == "hybrid" else {}
    settings = Settings(auto_migrate=True, max_connections=6, ack_level="hot" if redis else "")
    return {"tenant": new_ref(), "settings": settings, **redis}


async def _before_owners(
    monkeypatch: pytest.MonkeyPatch, url: str, how: dict[str, Any], *owners: str
) -> list[str]:
    """Let a task of each owner wait for input in one context, as the version before would."""
    every, app, tasks = migrate.migrations(), _app(), []
    # What writes to Redis needs later columns: there the migration's own statement is run again.
    redis = "redis" in how
    with monkeypatch.context() as old:
        if not redis:
            old.setattr(migrate, "migrations", lambda: every[:BEFORE])
            old.setattr(migrate, "function_files", lambda: ())
            old.setattr(Ticks, "run_due", _nothing)
            old.setattr(engine, "form_for", lambda **_: lambda sql: sql)
            old.setattr(session_log, "_SQL", {**session_log._SQL, "append_one": APPEND_BEFORE})
            old.setattr(client, "_SUBMIT", {**client._SUBMIT, "submit": SUBMIT_BEFORE})
            changed = {"claim": CLAIM_BEFORE, "transition": LEAVE_BEFORE}
            old.setattr(lease, "_SQL", {**lease._SQL, **changed})
            old.setattr(progress, "_SQL", {**progress._SQL, "record_step": STEP_BEFORE})
            old.setattr(work, "_SQL", {**work._SQL, "survey": SURVEY_BEFORE})
            old.setattr(short_term, "_SQL", {**short_term._SQL, "write": WRITE_BEFORE})
        old.setattr(State, "for_owner", lambda self, _owner, **_how: self)
        old.setattr(Remembering, "_history", lambda _self, history, _said: history)
        old.setattr(front_door, "move_sessions", _nothing)
        async with holdfast.open(url, **how) as state:
            for owner in owners:
                task = await app.submit(state, "go", owner=owner, session_id="c1")
                await app.run_until_idle(state)
                tasks.append(task.id)
    if redis:
        noted = re.search(
            r"^INSERT INTO holdfast.session_moves.*?;$", every[BEFORE].sql, re.MULTILINE | re.DOTALL
        )
        assert noted
        async with connected(url) as connection:
            await connection.execute(noted[0])
    return tasks


async def _nothing(_connections: object) -> None:
    """The version before moved no sessions, and had no schedules."""


async def _answered(state: State, task_id: str, owner: str) -> str:
    ana = state.for_owner(owner)
    waiting = await ana.tasks.get(task_id)
    assert waiting is not None
    assert waiting.state is TaskState.INPUT_REQUIRED
    await ana.tasks.respond(task_id, ChatMessage.user("the long one"))
    await _app().run_until_idle(state)
    done = await ana.tasks.get(task_id)
    assert done is not None
    assert done.state is TaskState.COMPLETED, done.note
    return done.messages[-1].text


async def test_an_owned_task_that_waits_for_input_survives_the_upgrade(
    monkeypatch: pytest.MonkeyPatch, url: str, wiring: dict[str, Any]
) -> None:
    [task] = await _before_owners(monkeypatch, url, wiring, "ana")
    async with holdfast.open(url, **wiring) as state:
        said = await _answered(state, task, "ana")
        assert "the long one" in said
        assert "'draft': 'half of it'" in said
        assert "I remember the harbour" in said
        assert "'decision'" in said
        # Nothing is left under the ids that every client can send.
        agent = _app().agent
        assert await state.short_term.get_state("c1") == {}
        assert await state.history.get_messages(agent, session_id="c1") == []
        assert await state.memory(agent).recall("harbour") == []
        assert [one.id for one in await state.for_owner("ana").episodes.list_sessions(agent)] == [
            "c1"
        ]
    async with connected(url) as connection:
        assert await connection.fetchval("SELECT count(*) FROM holdfast.session_moves") == 0
        rows = await connection.fetch("SELECT DISTINCT owner, subject FROM holdfast.events")
        assert [tuple(row) for row in rows] == [("ana", "ana")]


async def test_a_session_of_several_owners_is_closed_until_it_is_assigned(
    monkeypatch: pytest.MonkeyPatch, url: str, wiring: dict[str, Any]
) -> None:
    first, second, third = await _before_owners(monkeypatch, url, wiring, "ana", "bob", "")
    settings = Settings(storage_type="postgres", database_url=url, tenant=wiring["tenant"])
    async with holdfast.open(url, **wiring) as state:
        for task, owner in ((first, "ana"), (second, "bob"), (third, "")):
            # Nothing of what the three had shared.
            said = await _answered(state, task, owner)
            assert "'state': {}" in said
            assert "I remember" not in said
            await state.for_owner(owner).history.append(
                _app().agent, ChatMessage.user("I go on"), session_id="c1"
            )
        [reply] = [one async for one in examine(settings)]
        assert any("contexts assign c1 --owner NAME" in one for one in reply.warnings)
        with pytest.raises(ConflictError, match="ana has a session 'c1' already"):
            await state.ops.assign_context("c1", owner="ana")
        await state.ops.assign_context("c1", owner="ana", new_id="c1-old")
        moved = await state.for_owner("ana").history.get_messages(_app().agent, session_id="c1-old")
        assert len([one for one in moved if "I remember" in one.text]) == 3
        assert await state.for_owner("ana").short_term.get_state("c1-old")
        with pytest.raises(NotFoundError, match="waits for an owner"):
            await state.ops.assign_context("c1", owner="bob")
        [reply] = [one async for one in examine(settings)]
        assert not [one for one in reply.warnings if "contexts assign" in one]


async def test_what_is_in_redis_waits_for_a_process_that_has_it(
    monkeypatch: pytest.MonkeyPatch, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(auto_migrate=True, max_connections=6, ack_level="hot")
    tenant = new_ref()
    how: dict[str, Any] = {"tenant": tenant, "settings": settings, "redis": valkey().url}
    how["background"] = False
    [task] = await _before_owners(monkeypatch, url, how, "ana")
    async with holdfast.open(url, tenant=tenant, settings=settings) as state:
        assert "until a process with REDIS_URL opens" in caplog.text
        assert await state.for_owner("ana").short_term.get_state("c1") == {}
    async with holdfast.open(url, **how) as state:
        assert "half of it" in await _answered(state, task, "ana")
