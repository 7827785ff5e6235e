"""``holdfast db maintain --retain``: whole sessions and ended tasks, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import holdfast
from holdfast.engines.postgres.retention import Retain
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.owners import ANY_OWNER
from holdfast.values.retention import Retention
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
OLD = datetime.now(UTC) - timedelta(days=100)
POLICY = ["sessions=90d", "tasks=30d"]


async def _run(url: str, policy: Retention) -> dict[str, int]:
    async with connected(url) as connection:
        return {name: await job() for name, job in Retain(connection, policy).jobs().items()}


async def _age_tasks(url: str, *ids: str) -> None:
    async with connected(url) as connection:
        await connection.execute(
            "UPDATE holdfast.tasks SET updated_at = $2 WHERE id = ANY ($1)", list(ids), OLD
        )


def _note(session: str, when: datetime | None = None) -> Event:
    return Event(
        ANA,
        session,
        "note",
        {"note": "tide"},
        occurred_at=datetime.now(UTC) if when is None else when,
    )


async def _ended(state: holdfast.State, agent: str) -> str:
    task = await state.tasks.submit(agent, ChatMessage.user("tides?"))
    [claimed] = await state.tasks.claim("w1", agents=[agent])
    await state.tasks.transition(claimed.lease, "completed")
    return task.id


async def test_old_sessions_go_whole_and_what_was_touched_since_stays() -> None:
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        owned = state.for_owner("ben")
        other = state.for_tenant("other")
        for store in (state.episodes, owned.episodes, other.episodes):
            await store.append([_note("old", OLD), _note("grown", OLD), _note("held", OLD)])
            await store.append([_note("grown"), _note("new")])
        for one in (state, owned, other):
            await one.short_term.set_state("held", {"step": 1})
            await one.episodes.append([_note("future", datetime.max.replace(tzinfo=UTC))])
            await one.episodes.append([_note("imported", OLD)])
        async with connected(url) as connection:
            await connection.execute(
                "UPDATE holdfast.sessions SET started_at = $1 WHERE id !~ 'imported$'", OLD
            )
        assert await _run(url, Retention.parse(POLICY, tenant="default", dry_run=True)) == {
            "old sessions": 4,
            "old tasks": 0,
        }
        assert await state.episodes.get_session("old") is not None
        assert (await _run(url, Retention.parse(POLICY, tenant="default")))["old sessions"] == 4
        for one, kept in ((state, False), (owned, False), (other, True)):
            assert (await one.episodes.get_session("old") is not None) is kept
            assert (await one.episodes.get_session("future") is not None) is kept
            for name in ("grown", "held", "imported"):
                assert await one.episodes.get_session(name) is not None
            assert (await one.short_term.get_state("held")) == {"step": 1}
        assert len(await state.episodes.recall(ANA, "tide", limit=9)) == 5
        assert (await _run(url, Retention.parse(POLICY)))["old sessions"] == 2
        assert (await _run(url, Retention.parse(POLICY)))["old sessions"] == 0
        # A deleted session may begin again, with numbers that were never used.
        await state.episodes.append([_note("old")])
        assert await state.episodes.get_session("old") is not None


async def test_a_session_that_is_written_to_or_that_redis_numbers_stays() -> None:
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        await state.episodes.append([_note("written", OLD), _note("hot", OLD)])
        async with connected(url) as writer:
            await writer.execute("UPDATE holdfast.sessions SET started_at = $1", OLD)
            await writer.execute("UPDATE holdfast.sessions SET hot = true WHERE id = 'hot'")
            async with writer.transaction():
                await writer.execute(
                    "SELECT holdfast.store_event("
                    "'default', 'written', $1, 'note', 'e1', '', now(), '{}', NULL)",
                    str(ANA),
                )
                run = asyncio.create_task(_run(url, Retention.parse(["sessions=90d"])))
                async with connected(url) as other:
                    # Until it waits for the writer.
                    while not await other.fetchval(
                        "SELECT count(*) FROM pg_locks WHERE NOT granted"
                    ):
                        await asyncio.sleep(0.01)
            assert await run == {"old sessions": 0}
        assert await state.episodes.get_session("written") is not None
        assert await state.episodes.get_session("hot") is not None


async def test_old_tasks_go_if_they_ended_and_no_parent_waits_for_them() -> None:
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        ended, recent = await _ended(state, "a"), await _ended(state, "a")
        waiting = (await state.tasks.submit("b", ChatMessage.user("tides?"))).id
        parent = (await state.tasks.submit("c", ChatMessage.user("tides?"))).id
        child = await _ended(state, "d")
        async with connected(url) as connection:
            await connection.execute(
                "UPDATE holdfast.tasks SET copied = true WHERE state = 'completed'"
            )
            await connection.execute(
                "UPDATE holdfast.tasks SET parent_id = $2 WHERE id = $1", child, parent
            )
        await _age_tasks(url, ended, waiting, parent, child)
        policy = Retention.parse(POLICY)
        assert (await _run(url, Retention.parse(POLICY, dry_run=True)))["old tasks"] == 1
        assert (await _run(url, policy))["old tasks"] == 1
        left = {one.id for one in (await state.tasks.list(owner=ANY_OWNER, limit=9)).tasks}
        assert left == {recent, waiting, parent, child}
        await state.tasks.cancel(parent)
        assert (await _run(url, policy))["old tasks"] == 1
        assert await state.tasks.get(child) is None
        assert await state.tasks.get(parent) is not None


@pytest.mark.parametrize(
    "rule", ["", "sessions", "sessions=0d", "sessions=-1d", "events=9d", "tasks=1y", "tasks=9d "]
)
async def test_a_bad_rule_is_refused(rule: str) -> None:
    with pytest.raises(InvalidInputError, match="retain"):
        Retention.parse([rule])
    with pytest.raises(InvalidInputError, match="twice"):
        Retention.parse(["tasks=1d", "tasks=2d"])
