"""Redis loses its data again and again: committed loses nothing, and no read goes back unseen."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Settings
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from tests.durability.loss_client import agent, lines

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(3600)]

COMMAND = "python -m pytest tests/durability/test_hot_losses.py --long"
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "hot-losses.json"
ROOT = Path(__file__).parents[2]
ALL = 1_000_000
TINY = 0.001
"""So soon that a state leaves Redis whenever it is saved and nobody writes to it."""

either = pytest.mark.parametrize(
    "hot_state_seconds", [pytest.param(3600, id="kept"), pytest.param(TINY, id="evicted")]
)
LIMIT_SECONDS = 120.0
"""How long any single step of a run may take: it is a hang otherwise, and not a verdict."""


@dataclass
class Run:
    """The servers and clients of a run."""

    postgres: PostgresServer
    valkey: ValkeyServer
    folder: Path
    hot_state_seconds: float
    clients: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, role: str, slot: int, *, sessions: int, level: str = "") -> None:
        """Start a client."""
        job = {
            "postgres": self.postgres.url(),
            "redis": self.valkey.url,
            "folder": str(self.folder),
            "slot": slot,
            "sessions": sessions,
            "level": level,
            "hot_state_seconds": self.hot_state_seconds,
        }
        with (self.folder / f"log-{role}-{slot}").open("ab") as log:
            self.clients.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.durability.loss_client", role, json.dumps(job)],
                    cwd=ROOT,
                    stdout=log,
                    stderr=log,
                )
            )

    def acknowledged(self) -> list[list[str]]:
        """All lines of all writers."""
        return [line for path in self.folder.glob("writer-*") for line in lines(path)]

    async def until(self, what: Callable[[], bool]) -> None:
        """Wait for something that must happen."""
        limit = time.monotonic() + LIMIT_SECONDS
        while not what():
            ended = [client for client in self.clients if client.poll() is not None]
            logs = "".join(path.read_text()[-3000:] for path in self.folder.glob("log-*"))
            assert not ended, logs
            assert time.monotonic() < limit, logs
            await asyncio.sleep(0.01)

    async def begun(self, writers: int) -> None:
        """Wait until every writer has something acknowledged: before that it could not open."""
        paths = [self.folder / f"writer-{slot}" for slot in range(writers)]
        await self.until(lambda: all(lines(path) for path in paths))

    async def more(self, count: int) -> None:
        """Wait for so many acknowledgements that went by way of Redis."""

        def by_redis() -> int:
            return sum(line[3] == "0" for line in self.acknowledged() if len(line) > 3)

        wanted = by_redis() + count
        await self.until(lambda: by_redis() >= wanted)

    def evicted(self) -> int:
        """How many states the clients have evicted."""
        return sum(int(lines(path)[-1][0]) for path in self.folder.glob("evicted-*") if lines(path))

    async def evicts(self, count: int) -> None:
        """Wait for so many evictions more, where states are evicted at all."""
        if self.hot_state_seconds == TINY:
            wanted = self.evicted() + count
            await self.until(lambda: self.evicted() >= wanted)

    async def stop(self) -> None:
        """Let the clients end what they began."""
        (self.folder / "stop").touch()
        for client in self.clients:
            assert await asyncio.to_thread(client.wait, LIMIT_SECONDS) == 0


@contextmanager
def running(folder: Path, hot_state_seconds: float, *options: str) -> Iterator[Run]:
    """Servers of our own."""
    with ExitStack() as stack:
        postgres, valkey = PostgresServer(18), ValkeyServer(*options)
        stack.callback(postgres.remove)
        stack.callback(valkey.remove)
        postgres.start()
        valkey.start()
        run = Run(postgres, valkey, folder, hot_state_seconds)
        try:
            yield run
        finally:
            for client in run.clients:
                if client.poll() is None:
                    client.kill()
                    client.wait()


@either
async def test_committed_loses_nothing_when_a_redis_without_aof_is_killed_or_emptied(
    request: pytest.FixtureRequest, tmp_path: Path, hot_state_seconds: float
) -> None:
    long = request.config.getoption("--long")
    kills, flushes, between = (200, 50, 20) if long else (4, 8, 10)
    with running(tmp_path, hot_state_seconds, "--appendonly", "no") as run:
        settings = Settings(auto_migrate=True)
        async with holdfast.open(
            run.postgres.url(), redis=run.valkey.url, settings=settings
        ) as state:
            level = next(
                one for one in (await state.ops.health()).engines if one.engine == "hybrid"
            )
            assert level.durability.startswith("committed")
        for slot in range(2):
            run.start("writer", slot, sessions=6)
        await run.begun(2)
        for kind in _mixed({"kill": kills, "flush": flushes}):
            await run.more(between)
            if kind == "kill":
                await asyncio.to_thread(run.valkey.kill)
                await asyncio.to_thread(run.valkey.start)
            else:
                assert run.valkey.ask("FLUSHALL") == "+OK"
        await run.more(between)
        await run.evicts(flushes)
        await run.stop()
        # What is only in Redis does not count.
        assert run.valkey.ask("FLUSHALL") == "+OK"
        found = await _compared(run)
    assert found["lost"] == []
    assert found["duplicated"] == 0
    assert found["gaps_reported"] == found["dead_letters"] == 0
    if long:
        assert found["rewritten"] > 0, "Redis lost no event before its flush: nothing was tried"
        part = {"kills": kills, "flushes": flushes, **found}
        _publish("committed", hot_state_seconds, part)


def _mixed(counts: dict[str, int]) -> list[str]:
    """Faults in a fixed order in which each kind comes throughout."""
    turns = [(at / count, kind) for kind, count in counts.items() for at in range(count)]
    return [kind for _, kind in sorted(turns)]


async def _compared(run: Run) -> dict[str, Any]:
    """What was acknowledged against what there is."""
    events: dict[str, set[str]] = {}
    keys: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    rewritten = 0
    for what, session, name, _, again in run.acknowledged():
        rewritten = max(rewritten, int(again))
        if what == "event":
            events.setdefault(session, set()).add(name)
        elif what == "state":
            keys.setdefault(session, set()).add(name)
        else:
            counts[session] = max(int(name), counts.get(session, 0))
    lost: list[str] = []
    duplicated = gaps = 0
    settings = Settings(background=False)
    async with (
        holdfast.open(run.postgres.url(), settings=settings) as durable,
        holdfast.open(run.postgres.url(), redis=run.valkey.url, settings=settings) as hybrid,
    ):
        for session, ids in events.items():
            stored = await durable.episodes.recent(agent(session), session_id=session, limit=ALL)
            there = [one.id for one in stored]
            lost += [f"event {one} of {session}" for one in ids.difference(there)]
            duplicated += len(there) - len(set(there))
        for session in {*keys, *counts}:
            state = await hybrid.short_term.get_state(session)
            lost += [f"{key} of {session}" for key in keys.get(session, set()).difference(state)]
            if state.get("count", 0) < counts.get(session, 0):
                lost.append(f"count of {session}: {state.get('count')} of {counts[session]}")
        for session in events:
            woken = await hybrid.memory(agent(session), session_id=session).hydrate()
            gaps += len(woken.gaps) + (woken.state_as_of is not None)
        letters = await hybrid.ops.hybrid.durable.dead_letters("default", limit=1000)
    return {
        "acknowledged_events": sum(map(len, events.values())),
        "acknowledged_state_keys": sum(map(len, keys.values())),
        "acknowledged_increments": sum(counts.values()),
        "lost": lost,
        "duplicated": duplicated,
        "gaps_reported": gaps,
        "dead_letters": len(letters),
        "rewritten": rewritten,
        "states_evicted": run.evicted(),
    }


@either
async def test_no_read_goes_back_without_a_word_while_redis_comes_and_goes(
    request: pytest.FixtureRequest, tmp_path: Path, hot_state_seconds: float
) -> None:
    long = request.config.getoption("--long")
    outages, reads = (40, 30) if long else (3, 10)
    with running(tmp_path, hot_state_seconds) as run:
        settings = Settings(auto_migrate=True)
        async with holdfast.open(run.postgres.url(), redis=run.valkey.url, settings=settings):
            pass
        for slot in range(2):
            run.start("turns", slot, sessions=3, level="fsync")
        run.start("reader", 2, sessions=0, level="fsync")

        def read(*, reply: bool | None = None) -> int:
            made = lines(tmp_path / "reads-2")
            return sum(reply is None or line[1] == str(int(reply)) for line in made)

        async def reads_more(count: int, *, reply: bool) -> None:
            wanted = read(reply=reply) + count
            await run.until(lambda: read(reply=reply) >= wanted)

        await run.begun(2)
        await reads_more(reads, reply=False)
        for _ in range(outages):
            await asyncio.to_thread(run.valkey.kill)
            await reads_more(reads, reply=True)
            await asyncio.to_thread(run.valkey.start)
            await reads_more(reads, reply=False)
            await run.evicts(3)
        await run.stop()
        broken = [
            " ".join(line) for slot in range(3) for line in lines(tmp_path / f"broken-{slot}")
        ]
        found = {
            "outages": outages,
            "acknowledged": len(run.acknowledged()),
            "reads_of_the_third_process": read(),
            "reads_reported_as_degraded": read(reply=True),
            "violations_not_reported": broken,
            "states_evicted": run.evicted(),
        }
    assert found["violations_not_reported"] == []
    if long:
        _publish("reads", hot_state_seconds, found)


def _publish(part: str, hot_state_seconds: float, result: dict[str, Any]) -> None:
    name = f"{part}_with_evictions" if hot_state_seconds == TINY else part
    facts = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    facts = {**facts, "command": COMMAND, name: result}
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")
