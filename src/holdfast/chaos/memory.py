"""Memory under fire: consolidators, Valkey and Postgres killed while agents record."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from holdfast.kernel.core.errors import BackPressureError, EngineError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.episodes import Event
from holdfast.kernel.storage.wake import SessionWake
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State


@dataclass(frozen=True, slots=True)
class MemoryFaults:
    """How many agents record, at which level, and what happens meanwhile."""

    agents: int = 20
    consolidators: int = 2
    consolidator_kills: int = 6
    valkey_kills: int = 2
    postgres_kills: int = 2
    valkey_down_seconds: float = 4.0
    """How long every other killed Valkey stays away: longer than writers are patient."""
    level: str = "fsync"
    seed: int = 1
    pace_seconds: float = 0.05
    between_seconds: float = 0.6
    """How long, on average, between two faults."""
    limit_seconds: float = 600


@dataclass(slots=True)
class MemoryVerdict:
    """What was done to the stores, and what became of what was acknowledged."""

    acknowledged: int = 0
    stored: int = 0
    doubled: int = 0
    out_of_order: int = 0
    gaps: int = 0
    retries: int = 0
    aside: int = 0
    """Events that went to Postgres directly, because Valkey did not answer."""
    consolidator_kills: int = 0
    valkey_kills: int = 0
    postgres_kills: int = 0
    drain_seconds: float = 0.0
    recovery_seconds: dict[str, list[float]] = field(
        default_factory=lambda: {"valkey": [], "postgres": []}
    )
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


class MemoryRun:
    """One run: servers and consolidators of its own, in a folder of its own."""

    def __init__(self, faults: MemoryFaults, progress: Callable[[str], None]) -> None:
        self._faults = faults
        self._progress = progress
        self._rng = random.Random(faults.seed)  # noqa: S311 - a schedule that can be repeated
        self._consolidators: list[subprocess.Popen[bytes]] = []
        self._acknowledged: dict[str, list[str]] = {}
        self._begun = [asyncio.Event() for _ in range(faults.agents)]
        self._verdict = MemoryVerdict()

    async def run(self) -> MemoryVerdict:
        """Record, torment, drain, check; ``AssertionError`` names what is broken."""
        begun = time.monotonic()
        self._postgres, self._valkey = PostgresServer(18), ValkeyServer()
        self._folder = Path(tempfile.mkdtemp(prefix="hf-chaos-"))
        try:
            self._postgres.start()
            self._valkey.start()
            settings = Settings(auto_migrate=True, ack_level=self._faults.level)
            async with open_state(
                self._postgres.url(), redis=self._valkey.url, settings=settings, background=False
            ) as state:
                async with asyncio.timeout(self._faults.limit_seconds):
                    await self._record_under_fire(state)
                    await self._drain(state)
                await self._check(state)
        except BaseException:
            self._progress(f"the logs of the consolidators are in {self._folder}")
            raise
        else:
            shutil.rmtree(self._folder)
        finally:
            self._dismiss()
            self._valkey.remove()
            self._postgres.remove()
        self._verdict.seconds = round(time.monotonic() - begun, 1)
        return self._verdict

    async def _record_under_fire(self, state: State) -> None:
        stop = asyncio.Event()
        agents = [
            asyncio.create_task(self._record(state, number, stop))
            for number in range(self._faults.agents)
        ]
        await asyncio.gather(*(begun.wait() for begun in self._begun))
        for _ in range(self._faults.consolidators):
            self._hire()
        await self._torment()
        stop.set()
        await asyncio.gather(*agents)

    async def _record(self, state: State, number: int, stop: asyncio.Event) -> None:
        """One agent in one session: an event after the other, each until it is acknowledged."""
        agent, session = AgentId("chaos", f"a{number}"), f"s{number}"
        own = random.Random(number)  # noqa: S311 - only how long things take
        count = 0
        while not stop.is_set():
            event = Event(agent, session, "observation", {"number": count})
            while True:
                try:
                    await state.episodes.append([event])
                    break
                except (EngineError, BackPressureError):
                    self._verdict.retries += 1
                    await asyncio.sleep(0.05)
            self._acknowledged.setdefault(session, []).append(event.id)
            self._begun[number].set()
            count += 1
            await asyncio.sleep(own.uniform(0.5, 1.5) * self._faults.pace_seconds)

    def _hire(self) -> None:
        command = [sys.executable, "-m", "holdfast.chaos.memory_consolidator"]
        command += [self._postgres.url(), self._valkey.url]
        with (self._folder / "log").open("ab") as log:
            self._consolidators.append(
                subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    def _dismiss(self) -> None:
        for one in self._consolidators:
            with contextlib.suppress(ProcessLookupError):
                one.kill()
            one.wait()
        self._consolidators = []

    async def _torment(self) -> None:
        faults = self._faults
        schedule = ["consolidator"] * faults.consolidator_kills
        schedule += ["valkey"] * faults.valkey_kills + ["postgres"] * faults.postgres_kills
        self._rng.shuffle(schedule)
        for at, fault in enumerate(schedule, 1):
            self._progress(f"fault {at} of {len(schedule)}: {fault}")
            await asyncio.sleep(self._rng.uniform(0.2, 1.8) * faults.between_seconds)
            match fault:
                case "consolidator":
                    await self._kill_consolidator()
                case "valkey":
                    away = faults.valkey_down_seconds if self._verdict.valkey_kills % 2 else 0.0
                    await self._restart("valkey", self._valkey, away)
                    self._verdict.valkey_kills += 1
                case _:
                    await self._restart("postgres", self._postgres)
                    self._verdict.postgres_kills += 1
            self._keep_staff()

    async def _kill_consolidator(self) -> None:
        victim = self._consolidators.pop(self._rng.randrange(len(self._consolidators)))
        victim.kill()
        await asyncio.to_thread(victim.wait)
        self._verdict.consolidator_kills += 1
        self._hire()

    async def _restart(
        self, name: str, server: PostgresServer | ValkeyServer, away_seconds: float = 0.0
    ) -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(away_seconds)
        start = time.monotonic()
        await asyncio.to_thread(server.start)
        self._verdict.recovery_seconds[name].append(round(time.monotonic() - start, 2))

    def _keep_staff(self) -> None:
        """A consolidator that could not start without its stores is replaced."""
        for one in [one for one in self._consolidators if one.poll() is not None]:
            self._consolidators.remove(one)
            self._hire()

    async def _drain(self, state: State) -> None:
        start = time.monotonic()
        while True:
            self._keep_staff()
            try:
                pending = await state.pending_events()
            except EngineError:
                pending = -1
            self._progress(f"{pending} events to go")
            if pending == 0:
                break
            await asyncio.sleep(0.1)
        self._verdict.drain_seconds = round(time.monotonic() - start, 2)

    async def _check(self, state: State) -> None:
        verdict = self._verdict
        verdict.aside = state.hybrid.consolidator.metrics.aside
        assert isinstance(state.episodes, SessionWake)
        async with open_state(self._postgres.url(), settings=Settings()) as durable:
            for session, acknowledged in self._acknowledged.items():
                agent = AgentId("chaos", f"a{session[1:]}")
                found = await durable.episodes.recent(agent, session_id=session, limit=1_000_000)
                ids = [event.id for event in found]
                verdict.acknowledged += len(acknowledged)
                verdict.stored += len(ids)
                verdict.doubled += len(ids) - len(set(ids))
                verdict.out_of_order += ids != acknowledged
                merged = await state.episodes.recent(agent, session_id=session, limit=1_000_000)
                assert [event.id for event in merged] == ids, f"{session} reads otherwise"
                verdict.gaps += len((await state.episodes.wake(session)).gaps)
                assert ids == acknowledged, f"{session}: acknowledged is not what is stored"
        assert verdict.gaps == 0, "a gap was reported, and nothing is lost"
        assert verdict.acknowledged > 0, "nothing was recorded"
