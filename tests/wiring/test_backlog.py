"""``state.ops.backlog``: what waits of all tenants, in numbers alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import ChatMessage, State
from holdfast.engines.postgres.engine import Postgres
from holdfast.errors import InvalidInputError, NotSupportedError
from holdfast.values.tasks.new_task import NewTask
from tests.engines.postgres_database import as_keeper, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
HELLO = ChatMessage.user("hello")


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def state(request: pytest.FixtureRequest) -> AsyncIterator[State]:
    """A state of each kind with nothing in it."""
    if request.param == "memory":
        async with holdfast.open("memory:", tenant="acme") as opened:
            yield opened
        return
    async with migrated_database() as url, holdfast.open(url, tenant="acme") as opened:
        yield opened


async def test_open_tasks_of_all_tenants_are_counted_by_state_and_agent(state: State) -> None:
    other = state.for_tenant("globex")
    for ledger in (state.tasks, other.tasks):
        await ledger.submit("writer", HELLO)
    await other.for_owner("ana").tasks.submit("stranger", HELLO)
    await state.tasks.submit("writer", HELLO)
    [running] = await state.tasks.claim("w1", limit=1)
    [asking, done] = await other.tasks.claim("w1", limit=2)
    await other.tasks.transition(asking.lease, "input-required")
    found = await state.ops.backlog(agents=["writer"])
    assert sum(found.tasks.values()) == 4
    assert found.tasks["submitted", "writer"] == 1
    assert found.tasks["working", "writer"] + found.tasks.get(("working", "other"), 0) == 2
    await state.tasks.transition(running.lease, "completed")
    await other.tasks.transition(done.lease, "failed")
    found = await state.ops.backlog(agents=["writer"])
    states = {state for state, _ in found.tasks}
    assert states == {"submitted", "input-required"}
    assert (found.unembedded_events, found.dead_letters) == (0, 0)


async def test_an_agent_that_is_not_named_is_other_and_no_more_than_the_limit_is_counted(
    state: State,
) -> None:
    await state.tasks.submit_many([NewTask(f"agent-{number}", HELLO) for number in range(7)])
    assert (await state.ops.backlog()).tasks == {("submitted", "other"): 7}
    named = await state.ops.backlog(agents=["agent-3", "nobody"])
    assert named.tasks == {("submitted", "other"): 6, ("submitted", "agent-3"): 1}
    assert (await state.ops.backlog(limit=5)).tasks == {("submitted", "other"): 5}


async def test_the_oldest_due_task_of_any_tenant_has_waited_and_a_later_one_has_not(
    state: State,
) -> None:
    assert (await state.ops.backlog()).oldest_due_seconds == 0
    await state.tasks.submit("writer", HELLO, run_after=timedelta(hours=1))
    assert (await state.ops.backlog()).oldest_due_seconds == 0
    await state.for_tenant("globex").tasks.submit("writer", HELLO)
    first = (await state.ops.backlog()).oldest_due_seconds
    assert 0 <= first <= (await state.ops.backlog()).oldest_due_seconds < 600


async def test_wrong_arguments_are_refused_and_an_owner_does_not_ask(state: State) -> None:
    wrong: Any
    for field, wrong in (("agents", "writer"), ("agents", [7]), ("limit", -1), ("limit", "5")):
        with pytest.raises(InvalidInputError, match="agent" if field == "agents" else field):
            await state.ops.backlog(**{field: wrong})
    view = state.for_owner("ana").ops
    with pytest.raises(NotSupportedError):
        await view.backlog()
    with pytest.raises(NotSupportedError):
        view.pools()


async def test_it_reads_indexes_of_open_tasks_and_none_that_have_ended() -> None:
    async with migrated_database() as url:
        engine = await Postgres.open(url)
        async with as_keeper(engine) as connection:
            await connection.execute(
                "INSERT INTO holdfast.tasks (tenant, id, owner, context_id, context_key, agent, "
                "metadata, max_attempts, submit_key, submit_digest, retry_of, created_at, state, "
                "updated_at, version, transitions, due_at, copied) "
                "SELECT 't' || n % 20, n::text, '', n::text, n, 'writer', '{}', 5, '', '', '', "
                "now(), CASE WHEN n % 1000 = 0 THEN 'submitted' WHEN n % 3 = 0 THEN 'failed' "
                "ELSE 'completed' END, now(), 1, 1, now(), true FROM generate_series(1, 20000) n"
            )
            await connection.execute("ANALYZE holdfast.tasks")
            body = await connection.fetchval(
                "SELECT prosrc FROM pg_proc WHERE oid = 'holdfast.backlog'::regproc"
            )
            sql = body.split(";", 1)[1].replace("at_most", "10000")
            rows = await connection.fetch(
                "EXPLAIN (ANALYZE, TIMING OFF) " + re.sub(r"\bthese\b", "ARRAY['writer']", sql)
            )
        plan = "\n".join(row[0] for row in rows)
        assert "Seq Scan on tasks" not in plan
        read = [float(one) for one in re.findall(r"using tasks_\w+ .*actual rows=([\d.]+)", plan)]
        assert read
        assert max(read) <= 20, plan
        await engine.aclose()


async def test_the_use_of_the_pool_is_shown() -> None:
    async with migrated_database() as url, holdfast.open(url) as state:
        assert set(state.ops.pools()) == {"postgres"}
        idle = state.ops.pools()["postgres"]
        assert (idle.size, idle.in_use, idle.waiting) == (10, 0, 0)
    async with holdfast.open("memory:") as state:
        assert state.ops.pools() == {}
