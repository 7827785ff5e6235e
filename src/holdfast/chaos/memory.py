"""Checks the memory: compares what agents recorded during the faults with what is stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.chaos.memory_agent import Diary, agent_of, journal_of
from holdfast.chaos.verdict import Findings, MemoryCounts
from holdfast.spi.hybrid.hot_entry import BEGINNING
from holdfast.values.errors import EngineError
from holdfast.values.events import Event
from holdfast.wiring.state import State

ALL = 1_000_000
"""More events than a session of a run has."""


class MemoryWork:
    """The sessions of a run: waits until they are in Postgres, and checks them.

    ``hybrid`` is the state that agents use, ``durable`` the same tenant in Postgres alone. ::

        work = MemoryWork(hybrid, durable, folder, findings, processes=2, sessions=5)
        await work.drained()
        await work.check()
    """

    def __init__(
        self,
        hybrid: State,
        durable: State,
        folder: Path,
        findings: Findings,
        *,
        processes: int,
        sessions: int,
        shards: int,
    ) -> None:
        self._hybrid = hybrid
        self._durable = durable
        self._findings = findings
        self._journals = [journal_of(folder, slot) for slot in range(processes)]
        self._sessions = [f"s{number}" for number in range(processes * sessions)]
        self._shards = shards
        self.counts = MemoryCounts()
        self.left = 0
        """How many events were not in Postgres at the last check."""

    async def drained(self) -> None:
        """Wait until all events of this tenant are in Postgres and no session is behind."""
        begun, hot = time.monotonic(), self._hybrid.ops.hybrid.hot
        while True:
            try:
                waiting = [
                    await hot.length(self._hybrid.tenant, shard) for shard in range(self._shards)
                ]
                behind = await self._hybrid.ops.hybrid.durable.behind(limit=ALL)
            except EngineError:
                await asyncio.sleep(0.1)
                continue
            mine = sum(tenant == self._hybrid.tenant for tenant, _, _ in behind)
            self.left = sum(waiting) + mine
            if not self.left:
                break
            await asyncio.sleep(0.1)
        self.counts.drain_seconds = round(time.monotonic() - begun, 2)

    async def recording(self, *, within_seconds: float) -> None:
        """Wait up to ``within_seconds`` until every session has an acknowledged event.

        A fault before that would mostly hit the start of the sessions, not the agents' writes.
        """
        await self._until(
            lambda diaries: sum(len(one.acknowledged) for one in diaries) == len(self._sessions),
            within_seconds,
        )

    async def went_aside(self, *, within_seconds: float) -> None:
        """Wait up to ``within_seconds`` for an event that was written to Postgres as a fallback."""
        await self._until(
            lambda diaries: any(one.fallback_events for one in diaries), within_seconds
        )

    async def _until(
        self, reached: Callable[[Sequence[Diary]], bool], within_seconds: float
    ) -> None:
        limit = time.monotonic() + within_seconds
        while not reached([Diary.read(path) for path in self._journals]):
            if time.monotonic() > limit:
                return
            await asyncio.sleep(0.1)

    async def check(self) -> None:
        """Compare the agents' journals with the stored events."""
        counts, diaries = self.counts, [Diary.read(path) for path in self._journals]
        acknowledged = {
            session: ids for diary in diaries for session, ids in diary.acknowledged.items()
        }
        counts.fallback_events = sum(diary.fallback_events for diary in diaries)
        counts.retries = sum(diary.retries for diary in diaries)
        counts.longest_append_seconds = max(diary.longest_seconds for diary in diaries)
        letters = await self._hybrid.ops.hybrid.durable.dead_letters(
            self._hybrid.tenant, limit=1000
        )
        counts.dead_letters = len(letters)
        for session in self._sessions:
            await self._check_session(session, acknowledged.get(session, {}))

    async def _check_session(self, session: str, acknowledged: dict[str, str]) -> None:
        counts, found = self.counts, self._findings
        agent = agent_of(session)
        stored = await self._durable.episodes.recent(agent, session_id=session, limit=ALL)
        ids = [event.id for event in stored]
        there = set(ids)
        counts.acknowledged += len(acknowledged)
        counts.stored += len(ids)
        missing = [one for one in acknowledged if one not in there]
        if missing:
            counts.lost += len(missing)
            found.add("P1", f"{len(missing)} events of {session} are lost, the first {missing[0]}")
        doubled = len(ids) - len({event.payload["number"] for event in stored})
        if doubled:
            counts.duplicated += doubled
            found.add("P2", f"{doubled} events of {session} are stored more than once")
        self._check_order(session, acknowledged, stored)
        merged = await self._hybrid.episodes.recent(agent, session_id=session, limit=ALL)
        if [event.id for event in merged] != ids:
            found.add("P6", f"{session} reads differently through Valkey")
        woken = await self._hybrid.memory(agent, session_id=session).hydrate()
        counts.gaps_reported += len(woken.gaps)

    def _check_order(
        self, session: str, acknowledged: dict[str, str], stored: Sequence[Event]
    ) -> None:
        """Check that one writer's events are in the order of their acknowledgements.

        The successor of a killed writer cannot know which fallback writes to Postgres were still in
        flight. Order across such a break is not promised; deviations are counted.
        """
        positions = {event.id: (event.epoch, event.seq) for event in stored}
        last: dict[str, tuple[int, int]] = {}
        for event_id, writer in acknowledged.items():
            position = positions.get(event_id)
            if position is None:
                continue
            if position < last.get(writer, BEGINNING):
                self.counts.out_of_order += 1
                before = f"{event_id} of {session} is at {position}, before {last[writer]}"
                self._findings.add("P7", f"{before} of the same writer {writer}")
            elif position < max(last.values(), default=BEGINNING):
                self.counts.reordered_at_handover += 1
            last[writer] = max(position, last.get(writer, BEGINNING))
