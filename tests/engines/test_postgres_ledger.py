"""What is the ledger's own on Postgres: its edges, its indexes, its locks and its notices."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.listener import Listener, notice_digest
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import ConflictError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import EDGES, TaskState
from holdfast.values.tasks.events import StepKey, TaskEvent
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import Lease, TaskRecord
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

HELLO = ChatMessage.user("hello")


@asynccontextmanager
async def _engine(url: str, **how: Any) -> AsyncIterator[Postgres]:
    engine = await Postgres.open(url, auto_migrate=True, **how)
    try:
        yield engine
    finally:
        await engine.aclose()


@asynccontextmanager
async def _ledger() -> AsyncIterator[tuple[Ledger, Any]]:
    """A ledger in a database of its own, and a connection around it."""
    async with empty_database() as url, _engine(url) as engine, connected(url) as connection:
        yield Ledger(PostgresLedger(engine)), connection


async def test_the_edges_in_the_database_are_those_of_the_lifecycle() -> None:
    async with _ledger() as (_, connection):
        rows = await connection.fetch("SELECT from_state, to_state, actor FROM holdfast.task_edges")
    wanted = [(edge.from_state, edge.to_state, actor) for edge in EDGES for actor in edge.actors]
    assert Counter(map(tuple, rows)) == Counter(wanted)


async def test_a_move_that_the_table_does_not_have_is_refused_by_the_database() -> None:
    async with _ledger() as (ledger, connection):
        await connection.execute("DELETE FROM holdfast.task_edges WHERE to_state = 'completed'")
        await ledger.submit("writer", HELLO)
        [claimed] = await ledger.claim("w1")
        with pytest.raises(ConflictError, match="from 'working' to 'completed'"):
            await ledger.transition(claimed.lease, "completed")


async def _read(connection: Any, table: str) -> dict[str, int]:
    """What this transaction has read of a table: by itself, and by each of its indexes."""
    rows = await connection.fetch(
        "SELECT c.relname, pg_stat_get_xact_tuples_returned(c.oid) FROM pg_class c "
        "WHERE c.oid = to_regclass('holdfast.' || $1) OR c.oid IN ("
        "SELECT indexrelid FROM pg_index WHERE indrelid = to_regclass('holdfast.' || $1))",
        table,
    )
    return dict(map(tuple, rows))


async def _cost(connection: Any, table: str, sql: str, *args: Any) -> Counter[str]:
    """What a statement reads of a table, undone afterwards: once it has the plan that it keeps."""
    cost: Counter[str] = Counter()
    for _ in range(8):
        transaction = connection.transaction()
        await transaction.start()
        before = await _read(connection, table)
        await connection.fetch(sql, *args)
        after = await _read(connection, table)
        await transaction.rollback()
        cost = Counter({name: after[name] - before[name] for name in after})
    return +cost


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("serial", [False, True])
async def test_a_claim_reads_neither_ended_tasks_nor_the_whole_queue(
    analysed: bool, serial: bool
) -> None:
    async with _ledger() as (_, connection):
        await connection.execute(
            "INSERT INTO holdfast.task_contexts (tenant, owner, id, created_at) "
            "SELECT 'default', '', n::text, now() FROM generate_series(1, 3000) n"
        )
        await connection.execute(
            "INSERT INTO holdfast.tasks (tenant, id, owner, context_id, context_key, agent, "
            "metadata, max_attempts, submit_key, submit_digest, retry_of, created_at, state, "
            "updated_at, version, transitions, due_at) "
            "SELECT 'default', id, '', id, key, 'writer', '{}', 5, '', '', '', now(), "
            "CASE key % 2 WHEN 0 THEN 'submitted' ELSE 'completed' END, now(), 2, 1, now() "
            "FROM holdfast.task_contexts"
        )
        if analysed:
            await connection.execute("ANALYZE")
        # More at work than the planner knows of, in whatever contexts.
        await connection.execute(
            "UPDATE holdfast.tasks SET state = 'working' WHERE context_key % 4 = 0"
        )
        claim = "SELECT * FROM holdfast.claim_tasks('default', 'w', NULL, 10, 30, $1, NULL)"
        await connection.execute("VACUUM")
        cost = await _cost(connection, "tasks", claim, serial)
        assert cost["tasks"] == 0
        assert cost["tasks_queue"] == 10
        assert sum(cost.values()) <= 60, cost


KNOWN = StoredMessage.of(ChatMessage.assistant("0")).digest()
ENDED = "'default', $1, 1, 'failed', '', NULL, NULL, false, 'm', now(), '', '', NULL, NULL, NULL"
WRITES = (
    "append_task_message('default', $1, 1, 'm', now(), '{}', 'd')",
    f"append_task_message('default', $1, 1, 'm0', now(), '{{}}', '{KNOWN}')",
    "append_task_remark('default', $1, 1, 'm', now(), '{}', 'd', 'say', 'x', 1, '{}')",
    f"append_task_remark('default', $1, 1, 'm0', now(), '{{}}', '{KNOWN}', 'say', 'y', 1, '')",
    "append_task_remark('default', $1, 1, 'm', now(), '{}', 'd', 'say', 'z', 1, '{}')",
    "record_task_step('default', $1, 1, 'step', 'x', 1, '1', '', '')",
    "record_task_step('default', $1, 1, 'say', 'z', 1, '1', '', '')",
    "append_task_chunk('default', $1, 1, 'a', '[]', true, false, '', '', NULL, NULL, NULL)",
    "append_task_chunk('default', $1, 1, 'b', '[]', true, false, '', '', 'step', 'x', 1)",
    "release_task('default', $1, 1, '')",
    f"transition_task({ENDED})",
)
"""New messages, steps and chunks, and those that are there already."""


async def _all_read(engine: Postgres, connection: Any) -> int:
    """What the engine's connection has read by indexes so far."""
    await engine.fetch_across("SELECT pg_stat_force_next_flush()", safe=True)
    return int(
        await connection.fetchval(
            "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'holdfast'"
        )
    )


async def test_calls_on_tables_without_statistics_read_no_other_tasks() -> None:
    """Plans are kept from when the tables were all but empty, as they are after a first start."""
    async with empty_database() as url, _engine(url, max_connections=1) as engine:
        ledger = Ledger(PostgresLedger(engine))
        for _ in range(300):
            await ledger.submit("writer", HELLO)
        async with connected(url) as connection:
            before = await _all_read(engine, connection)
            for _ in range(20):
                await ledger.submit("writer", HELLO)
                claimed = await ledger.claim("w1", limit=10)
                await ledger.complete_many([one.lease for one in claimed])
            read = await _all_read(engine, connection) - before
    # A claim looks at some rows more than once; none is one of those that wait or have ended.
    assert read < 20 * 11 * 20


async def _worked_on(ledger: Ledger, length: int) -> Lease:
    """The lease on a new task with a timeline of some length."""
    await ledger.submit("writer", HELLO)
    [claimed] = await ledger.claim("w1")
    for at in range(length):
        message = ChatMessage.assistant(str(at), id=f"m{at}")
        await ledger.append_message(claimed.lease, message)
        if at % 4 == 0:
            await ledger.record_step(claimed.lease, StepKey("s", at + 1), at)
            await ledger.append_artifact(claimed.lease, "a", [TextBlock(str(at))], append=True)
    remark = ChatMessage.assistant("said")
    await ledger.append_message(claimed.lease, remark, step=StepKey("z", kind="say"))
    return claimed.lease


async def test_no_call_reads_more_of_a_long_timeline_than_of_a_short_one() -> None:
    async with empty_database() as url, _engine(url) as engine, connected(url) as connection:
        # Many tenants with little, as the planner expects it, and one with much.
        for at in range(30):
            await _worked_on(Ledger(PostgresLedger(engine, tenant=f"tenant {at}")), 1)
        ledger = Ledger(PostgresLedger(engine))
        leases = [await _worked_on(ledger, length) for length in (2, 300)]
        await connection.execute("ANALYZE")
        for write in WRITES:
            short, long = [
                await _cost(connection, "task_events", f"SELECT holdfast.{write}", lease.task_id)
                for lease in leases
            ]
            assert sum(short.values()) == sum(long.values()), (write, short, long)
        get, after = load("ledger_client")["get"], load("ledger_audit")["events"]
        for sql, given in ((get, ("", 2, False)), (after, ("", 5, 2))):
            short, long = [
                await _cost(connection, "task_events", sql, "default", lease.task_id, *given)
                for lease in leases
            ]
            assert sum(short.values()) == sum(long.values()), (sql, short, long)
        replay, ended = (
            load("ledger_audit")["replay"],
            [task.version for task in await _both(ledger)],
        )
        for back in (0, 3):
            short, long = [
                await _cost(
                    *(connection, "task_events", replay, "default", lease.task_id),
                    *(None, version - back, 2, False),
                )
                for lease, version in zip(leases, ended, strict=True)
            ]
            assert sum(short.values()) == sum(long.values()) < 30, (replay, short, long)


async def _both(ledger: Ledger) -> list[TaskRecord]:
    return (await ledger.list(order="oldest")).tasks


async def test_two_claims_at_once_never_take_one_task_each_of_a_context() -> None:
    async with _ledger() as (ledger, connection):
        for at in range(20):
            for agent in ("writer", "reader"):
                await ledger.submit(agent, HELLO, session_id=f"c{at}")
        batches = await asyncio.gather(
            *(
                ledger.claim(f"w{at}", agents=[agent], limit=3)
                for at in range(20)
                for agent in ("writer", "reader")
            )
        )
        contexts = [one.task.session_id for batch in batches for one in batch]
        assert len(set(contexts)) == len(contexts)
        rest = await ledger.claim("w", limit=100)
        contexts += [one.task.session_id for one in rest]
        assert sorted(contexts) == sorted(f"c{at}" for at in range(20))
        with pytest.raises(Exception, match="tasks_at_work"):
            await connection.execute("UPDATE holdfast.tasks SET state = 'working'")


async def test_a_lost_race_for_a_submit_key_leaves_nothing_behind() -> None:
    async with _ledger() as (ledger, connection):
        await asyncio.gather(*(ledger.submit("writer", HELLO, submit_key="k") for _ in range(20)))
        assert len(await connection.fetch("TABLE holdfast.task_contexts")) == 1
        assert len(await connection.fetch("TABLE holdfast.tasks")) == 1
        assert len(await connection.fetch("TABLE holdfast.task_events")) == 2


async def test_a_submit_that_runs_again_after_a_lost_answer_is_one_task() -> None:
    async with _ledger() as (ledger, connection):
        draft = Draft(AgentId.parse("writer"), StoredMessage.of(HELLO))
        first = await ledger._storage.submit(draft)
        assert await ledger._storage.submit(draft) == first
        assert await connection.fetchval("SELECT count(*) FROM holdfast.task_events") == 2


async def test_a_context_that_is_cleared_while_tasks_come_in_leaves_no_orphans() -> None:
    async with _ledger() as (ledger, connection):
        for _ in range(10):
            await asyncio.gather(
                *(
                    ledger.submit("writer", HELLO, session_id="c", push=[PushConfig("p", "x:y")])
                    for _ in range(4)
                ),
                ledger.clear_context("c"),
                ledger.claim("w", limit=2, serial_contexts=False),
            )
        for orphans in (
            "SELECT context_key FROM holdfast.tasks EXCEPT SELECT key FROM holdfast.task_contexts",
            "SELECT task_id FROM holdfast.task_events EXCEPT SELECT id FROM holdfast.tasks",
            "SELECT task_id FROM holdfast.push_configs EXCEPT SELECT id FROM holdfast.tasks",
            "SELECT task_id FROM holdfast.outbox EXCEPT SELECT id FROM holdfast.tasks",
        ):
            assert await connection.fetch(orphans) == []
        await check_invariants(ledger)


async def _client(ledger: Ledger, random: Random) -> None:
    """One of many clients, who do this and that to any task."""
    tasks = (await ledger.list(owner=None, limit=100)).tasks
    task = random.choice(tasks).id
    match random.randrange(6):
        case 0:
            await ledger.cancel(task)
        case 1:
            await random.choice([ledger.pause, ledger.resume])(task)
        case 2:
            await ledger.respond(task, ChatMessage.user("a"))
        case 3:
            for entry in await ledger.claim_outbox(limit=5):
                await ledger.mark_delivered(entry)
        case _:
            await ledger.submit("writer", HELLO, push=[PushConfig("p", "x:y")])


async def _worker(ledger: Ledger, random: Random, leases: list[Lease]) -> None:
    """One of many workers, under leases that may be anybody's."""
    if not leases or random.random() < 0.4:
        taken = await ledger.claim("w", limit=3, serial_contexts=random.random() < 0.8)
        leases += [one.lease for one in taken]
    for lease in random.sample(leases, min(1, len(leases))):
        match random.randrange(4):
            case 0:
                await ledger.append_message(lease, ChatMessage.assistant("x"))
            case 1:
                await ledger.record_step(lease, StepKey("s", random.randint(1, 3)), 1)
            case 2:
                await ledger.append_artifact(lease, "a", [], step=StepKey("s"))
            case _:
                to = random.choice(["submitted", "input-required", "completed"])
                await ledger.transition(lease, to, message=ChatMessage.assistant("?"))


async def _storm(ledger: Ledger, seed: int, leases: list[Lease]) -> None:
    random = Random(seed)  # noqa: S311 - the same storm each time
    for _ in range(40):
        with suppress(ConflictError):
            if seed % 2:
                await _client(ledger, random)
            else:
                await _worker(ledger, random, leases)


async def test_a_storm_of_clients_and_workers_keeps_every_invariant_and_never_deadlocks() -> None:
    async with _ledger() as (ledger, connection):
        for at in range(12):
            await ledger.submit("writer", HELLO, session_id=f"c{at % 4}", max_attempts=1000)
        leases: list[Lease] = []
        await asyncio.gather(*(_storm(ledger, seed, leases) for seed in range(8)))
        await check_invariants(ledger)
        tasks = (await ledger.list(owner=None, limit=500)).tasks
        assert {task.state for task in tasks} >= {TaskState.COMPLETED, TaskState.CANCELED}
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        assert (
            await connection.fetchval(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            )
            == 0
        )


async def _all(ledger: Ledger, task_id: str) -> list[TaskEvent]:
    async with asyncio.timeout(20):
        return [event async for event in ledger.follow(task_id)]


async def test_a_follower_is_woken_by_a_notice_of_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Nobody looks without a notice while this test runs.
    monkeypatch.setattr("holdfast.engines.postgres.listener.LISTENING_POLL_SECONDS", 1000)
    async with empty_database() as url, _engine(url) as engine, _engine(url) as other:
        ledger, elsewhere = Ledger(PostgresLedger(engine)), Ledger(PostgresLedger(other))
        task = await ledger.submit("writer", HELLO)
        following = asyncio.create_task(_all(ledger, task.id))
        async with asyncio.timeout(20):
            while not engine.singleton(Listener).hears:
                await asyncio.sleep(0.01)
        [claimed] = await elsewhere.claim("w1")
        await elsewhere.append_message(claimed.lease, ChatMessage.assistant("x"))
        await elsewhere.record_step(claimed.lease, StepKey("s"), 1)
        await elsewhere.append_artifact(claimed.lease, "a", [])
        await elsewhere.pause(task.id)
        await elsewhere.transition(claimed.lease, "completed")
        assert await following == await ledger.events(task.id)


async def test_without_notices_a_follower_looks_by_itself() -> None:
    async with (
        empty_database() as url,
        _engine(url, max_connections=1) as engine,
        _engine(url) as other,
    ):
        ledger, elsewhere = Ledger(PostgresLedger(engine)), Ledger(PostgresLedger(other))
        task = await ledger.submit("writer", HELLO)
        following = asyncio.create_task(_all(ledger, task.id))
        await asyncio.sleep(0.05)
        assert not engine.singleton(Listener).hears
        await elsewhere.cancel(task.id)
        assert await following == await ledger.events(task.id)


async def test_only_tasks_that_somebody_follows_send_notices() -> None:
    async with _ledger() as (ledger, connection):
        heard = []
        await connection.add_listener("holdfast", lambda *notice: heard.append(notice[-1]))
        quiet, followed = [await ledger.submit("writer", HELLO) for _ in range(2)]
        await anext(ledger.follow(followed.id))
        for task in (quiet, followed):
            await ledger.cancel(task.id)
        await connection.execute("SELECT 1")
        key = await connection.fetchval("SELECT key FROM holdfast.notice_key")
        work = notice_digest(key, "work")
        reply = [notice for notice in heard if notice != work]
        assert reply == [notice_digest(key, f"default\ntask\n{followed.id}")]
