"""The primary dies under load, its synchronous standby takes over, and the clients go on."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import holdfast
from holdfast import AgentId, App, ChatMessage, Settings, State, TaskContext, Worker
from holdfast.engines.postgres.admin import PostgresAdmin
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.hosts import connector
from holdfast.engines.postgres.listener import Listener
from holdfast.errors import EngineError, UnavailableError
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.postgres_pair import PostgresPair
from holdfast.testing.postgres_server import free_port
from holdfast.wiring.doctor import examine

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

COMMAND = "python -m pytest tests/durability/test_postgres_failover.py --long"
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "postgres-failover.json"
ANA = AgentId("writer", "ana")
LIMIT_SECONDS = 120.0
"""How long any single step may take: it is a hang otherwise, and not a verdict."""


@pytest.fixture
def pair() -> Iterator[PostgresPair]:
    """A primary and its standby, of this test's own."""
    found = PostgresPair()
    found.start()
    yield found
    found.remove()


class Load:
    """Clients that write without a pause, and remember what was acknowledged."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stopped = asyncio.Event()
        self.messages: dict[str, list[str]] = {f"s{at}": [] for at in range(4)}
        self.patches: dict[str, list[str]] = {f"p{at}": [] for at in range(2)}
        self.tasks: list[str] = []
        self.failures = 0

    @property
    def count(self) -> int:
        """How many writes were acknowledged."""
        return sum(map(len, (*self.messages.values(), *self.patches.values(), self.tasks)))

    async def run(self) -> None:
        """Write, and work, until ``stop``."""
        app = App("writer")
        app.handler(max_attempts=50, backoff_seconds=0.05, max_backoff_seconds=0.2)(self._handle)
        worker = Worker(app, self._state, lease_seconds=2, recovery_seconds=0.2, poll_seconds=0.1)
        working = asyncio.create_task(worker.run())
        async with asyncio.TaskGroup() as group:
            for session in self.messages:
                group.create_task(self._append(session))
            for session in self.patches:
                group.create_task(self._patch(session))
            group.create_task(self._submit())
        async with asyncio.timeout(LIMIT_SECONDS):
            while await self._open_tasks():
                await asyncio.sleep(0.1)
        worker.stop()
        await working

    def stop(self) -> None:
        """Let every writer end what it began."""
        self._stopped.set()

    async def more(self, count: int) -> None:
        """Wait for so many acknowledgements more."""
        wanted = self.count + count
        async with asyncio.timeout(LIMIT_SECONDS):
            while self.count < wanted:
                await asyncio.sleep(0.01)

    async def _until_acknowledged(self, write: Callable[[], Awaitable[Any]]) -> None:
        while True:
            try:
                await write()
            except EngineError:
                # What the error says: try again, with the same id.
                self.failures += 1
                await asyncio.sleep(0.02)
            else:
                return

    async def _append(self, session: str) -> None:
        while not self._stopped.is_set():
            message = ChatMessage.user(f"{len(self.messages[session])}")
            append = partial(self._state.history.append, ANA, message, session_id=session)
            await self._until_acknowledged(append)
            self.messages[session].append(message.id)

    async def _patch(self, session: str) -> None:
        while not self._stopped.is_set():
            key = f"k{len(self.patches[session])}"
            patch = partial(self._state.short_term.update_state, session, {key: key})
            await self._until_acknowledged(patch)
            self.patches[session].append(key)
            await asyncio.sleep(0.01)

    async def _submit(self) -> None:
        while not self._stopped.is_set():
            key = f"t{len(self.tasks)}"
            said = ChatMessage.user(key)
            submit = partial(self._state.tasks.submit, "writer", said, submit_key=key)
            await self._until_acknowledged(submit)
            self.tasks.append(key)
            await asyncio.sleep(0.05)

    async def _handle(self, task: TaskContext) -> str:
        async def step() -> str:
            return task.message.text

        said: str = await task.step("say", step)
        return said

    async def _open_tasks(self) -> bool:
        try:
            listed = await self._state.tasks.list(states=["completed"], limit=0, count=True)
        except EngineError:
            return True
        return listed.total is None or listed.total < len(self.tasks)

    async def check(self) -> dict[str, int]:
        """Compare what was acknowledged with what there is."""
        lost = doubled = 0
        for session, ids in self.messages.items():
            stored = [
                one.id for one in await self._state.history.get_messages(ANA, session_id=session)
            ]
            lost += len(set(ids).difference(stored))
            doubled += len(stored) - len(set(stored))
            assert stored == ids, f"{session} is not in the order of its writer"
        for session, keys in self.patches.items():
            state = await self._state.short_term.get_state(session)
            lost += len(set(keys).difference(state))
        page = await self._state.tasks.list(states=["completed"], limit=1000)
        said = [one.submit_key for one in page.tasks]
        lost += len(set(self.tasks).difference(said))
        doubled += len(said) - len(set(said))
        await check_invariants(self._state.tasks, submitted=len(self.tasks))
        return {"acknowledged": self.count, "lost": lost, "doubled": doubled}


async def test_a_failover_under_load_loses_no_acknowledged_write_and_doubles_none(
    request: pytest.FixtureRequest, pair: PostgresPair
) -> None:
    long = request.config.getoption("--long")
    recoveries: list[float] = []
    settings = Settings(auto_migrate=True, max_connections=12)
    async with holdfast.open(pair.url(), settings=settings) as state:
        load = Load(state)
        running = asyncio.create_task(load.run())
        for _ in range(10 if long else 1):
            await load.more(100)
            begun, before = time.monotonic(), pair.primary
            await asyncio.to_thread(pair.fail_over)
            assert pair.primary is not before
            await load.more(1)
            recoveries.append(round(time.monotonic() - begun, 2))
            await load.more(100)
            await asyncio.to_thread(pair.repair)
        await load.more(100)
        load.stop()
        await running
        found = await load.check()
    assert found == {"acknowledged": load.count, "lost": 0, "doubled": 0}
    if long:
        times = {
            "count": len(recoveries),
            "p50": round(statistics.median(recoveries), 2),
            "max": max(recoveries),
        }
        facts = {"command": COMMAND, "failovers": len(recoveries), **found}
        facts |= {"failed_calls": load.failures, "recovery_seconds": times}
        RESULT.write_text(json.dumps(facts, indent=2) + "\n")


async def test_a_primary_that_became_read_only_is_left_for_the_new_one(pair: PostgresPair) -> None:
    async with holdfast.open(pair.url(), settings=Settings(auto_migrate=True)) as state:
        await state.short_term.set_state("s1", {"at": "first"})
        pair.ask("ALTER SYSTEM SET default_transaction_read_only = on")
        pair.ask("SELECT pg_reload_conf()")
        await asyncio.to_thread(pair.promote)
        # No connection to the old primary was lost: it refuses the write.
        await state.short_term.set_state("s1", {"at": "second"})
        assert await state.short_term.get_state("s1") == {"at": "second"}
    assert pair.ask("SELECT count(*) FROM holdfast.states") == "1"


async def _written_until_refused(state: State) -> None:
    # Each process of the server reads its configuration a moment after it was told to.
    while True:
        await state.short_term.set_state("s1", {"at": "second"})


async def test_a_server_that_takes_no_writes_is_an_outage(pair: PostgresPair) -> None:
    async with holdfast.open(pair.url(), settings=Settings(auto_migrate=True)) as state:
        await state.short_term.set_state("s1", {"at": "first"})
        pair.ask("ALTER SYSTEM SET default_transaction_read_only = on")
        pair.ask("SELECT pg_reload_conf()")
        async with asyncio.timeout(LIMIT_SECONDS):
            with pytest.raises(UnavailableError, match="read-only"):
                await _written_until_refused(state)
        pair.ask("ALTER SYSTEM RESET default_transaction_read_only")
        pair.ask("SELECT pg_reload_conf()")
        await state.short_term.set_state("s1", {"at": "third"})


async def test_notices_arrive_again_after_a_failover(pair: PostgresPair) -> None:
    engine = await Postgres.open(pair.url(), auto_migrate=True)
    listener = engine.singleton(Listener)
    async with asyncio.timeout(LIMIT_SECONDS):
        with listener.bell("news"):
            listener.start()
            for hears in (True, False, True):
                while listener.hears is not hears:
                    await asyncio.sleep(0.01)
                if not hears:
                    await asyncio.to_thread(pair.promote)
                elif pair.primary.process is not None and pair.standby is not None:
                    await asyncio.to_thread(pair.kill_primary)
    await engine.aclose()


async def test_the_primary_is_found_wherever_it_stands_in_the_url(pair: PostgresPair) -> None:
    assert pair.standby is not None
    url = pair.url((pair.standby.port, pair.primary.port)).partition("?")[0]
    admin = await PostgresAdmin.open(url)
    assert (await admin.status()).have == 0
    await admin.migrate()
    await admin.aclose()
    engine = await Postgres.open(url)
    assert engine.capabilities.host == f"127.0.0.1:{pair.primary.port}"
    await engine.aclose()


async def test_a_host_that_does_not_answer_leaves_time_for_the_next(pair: PostgresPair) -> None:
    # It takes the connection, and is silent: as a machine that hangs.
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        url = pair.url((silent.getsockname()[1], pair.primary.port))
        engine = await Postgres.open(url, auto_migrate=True, connect_timeout_seconds=6)
        await engine.ping()
        await engine.aclose()


async def test_a_wrong_password_is_not_tried_on_every_host(pair: PostgresPair) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await connector(pair.url())(pair.url().replace("only-for", "not-for"), timeout=10)


async def test_doctor_shows_the_host_and_whether_a_standby_is_synchronous(
    pair: PostgresPair,
) -> None:
    settings = Settings(database_url=pair.url(), auto_migrate=True)
    [found] = [one async for one in examine(settings)]
    primary = f"the primary at 127.0.0.1:{pair.primary.port}"
    assert f"{primary}, 1 standby, synchronous" in found.capabilities
    # The test logs in as a superuser, which is a warning of its own.
    assert [
        warning for warning in found.warnings if "standby" in warning or "failover" in warning
    ] == []
    pair.ask("ALTER SYSTEM RESET synchronous_standby_names")
    pair.ask("SELECT pg_reload_conf()")
    [found] = [one async for one in examine(settings)]
    assert f"{primary}, 1 standby, not synchronous" in found.capabilities
    assert [warning for warning in found.warnings if "synchronous_standby_names" in warning]
