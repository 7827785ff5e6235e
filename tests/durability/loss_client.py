"""Clients for runs in which Redis loses its data: ``python -m tests.durability.loss_client``.

What was acknowledged is a line in a plain file, synced to the disk before it counts: the oracle has
nothing to do with the product. The first argument is the role, the second a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast
from holdfast import AgentId, ChatMessage, Event, HoldfastError, Settings
from holdfast.errors import BackPressureError

RETRY_SECONDS = 0.02
ERRORS = (BackPressureError, HoldfastError)


@dataclass(frozen=True, slots=True)
class Job:
    """What a client is told."""

    postgres: str
    redis: str
    folder: str
    slot: int
    sessions: int
    level: str = ""
    hot_state_seconds: float = 3600

    @classmethod
    def read(cls) -> Job:
        """From the command line."""
        return cls(**json.loads(sys.argv[2]))

    def settings(self, *, background: bool = True) -> Settings:
        """How a client opens."""
        return Settings(
            auto_migrate=False,
            ack_level=self.level,
            background=background,
            hot_state_seconds=self.hot_state_seconds,
        )

    def stopped(self) -> bool:
        """Whether the run is over."""
        return (Path(self.folder) / "stop").exists()


class Journal:
    """Lines on the disk."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, *words: object) -> None:
        """Write a line; it is on the disk when this returns."""
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())
        os.fsync(self._file)


def lines(path: Path) -> list[list[str]]:
    """What a client has written so far; a line that was cut short does not count."""
    if not path.exists():
        return []
    return [line.split(" ") for line in path.read_text().split("\n")[:-1]]


def agent(session: str) -> AgentId:
    """Whose session it is."""
    return AgentId("loss", session)


class Writer:
    """Writes events, messages and states; each until it is acknowledged."""

    def __init__(self, job: Job, state: holdfast.State) -> None:
        self._job = job
        self._state = state
        self._journal = Journal(Path(job.folder) / f"writer-{job.slot}")
        self._aside = (0, 0)

    async def run(self) -> None:
        """All sessions at once."""
        async with asyncio.TaskGroup() as tasks:
            for at in range(self._job.sessions):
                tasks.create_task(self._session(f"w{self._job.slot}s{at}"))

    async def _session(self, session: str) -> None:
        own, count = random.Random(session), 0  # noqa: S311 - only what comes when
        while not self._job.stopped():
            count += 1
            match own.randrange(5):
                case 0:
                    message = ChatMessage.user(f"{session} {count}")
                    await self._acknowledged(
                        lambda message=message: self._state.history.append(
                            agent(session), message, session_id=session
                        )
                    )
                    self._note("event", session, message.id)
                case 1 | 2:
                    event = Event(agent(session), session, "note", {"number": count})
                    await self._acknowledged(
                        lambda event=event: self._state.episodes.append([event])
                    )
                    self._note("event", session, event.id)
                case 3:
                    patch = {f"k{count}": count}
                    await self._acknowledged(
                        lambda patch=patch: self._state.short_term.update_state(session, patch)
                    )
                    self._note("state", session, f"k{count}")
                case _:
                    await self._increment(session)
            await asyncio.sleep(own.uniform(0, 0.01))

    async def _increment(self, session: str) -> None:
        """Count one up from what is there, if nobody else did."""
        while True:
            try:
                seen = await self._state.short_term.snapshot(session, keys=["count"])
                value = seen.state.get("count", 0) + 1
                await self._state.short_term.update_state(
                    session, {"count": value}, expected_version=seen.version
                )
            except ERRORS:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._note("count", session, value)
            return

    async def _acknowledged(self, write: Any) -> None:
        while True:
            try:
                await write()
            except ERRORS:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            return

    def _note(self, what: str, session: str, name: object) -> None:
        metrics = self._state.ops.hybrid.consolidator.metrics
        now = (metrics.fallback_events, metrics.fallback_states)
        past = int(now != self._aside)
        self._aside = now
        self._journal.note(what, session, name, past, metrics.rewritten)


class Turns:
    """Writes messages, and reads its own writes after each."""

    def __init__(self, job: Job, state: holdfast.State) -> None:
        self._job = job
        self._state = state
        self._journal = Journal(Path(job.folder) / f"writer-{job.slot}")
        self._broken = Journal(Path(job.folder) / f"broken-{job.slot}")

    async def run(self) -> None:
        """All sessions at once."""
        async with asyncio.TaskGroup() as tasks:
            for at in range(self._job.sessions):
                tasks.create_task(self._session(f"w{self._job.slot}s{at}"))

    async def _session(self, session: str) -> None:
        count = 0
        while not self._job.stopped():
            message = ChatMessage.user(f"{session} {count}")
            try:
                await self._state.history.append(agent(session), message, session_id=session)
                count += 1
                self._journal.note("event", session, message.id)
                await self._state.short_term.update_state(session, {"count": count})
                self._journal.note("count", session, count)
            except ERRORS:
                continue
            await self._read(session, count)
            # Now and then it rests until its state is saved, and may be evicted.
            await asyncio.sleep(0.005 if count % 25 else 0.5)

    async def _read(self, session: str, count: int) -> None:
        """What this process wrote it reads, degraded or not."""
        try:
            there = await self._state.history.count_messages(agent(session), session_id=session)
            state = await self._state.short_term.get_state(session)
            woken = await self._state.memory(agent(session), session_id=session).hydrate()
        except ERRORS:
            return
        if there < count:
            self._broken.note("own", session, f"count_messages {there} of {count}")
        if state.get("count", 0) < count:
            self._broken.note("own", session, f"state {state.get('count', 0)} of {count}")
        if woken.status == "new":
            self._broken.note("own", session, "hydrate says new")


class Reader:
    """A third process: reads what others wrote, and writes down what goes back without a word."""

    def __init__(self, job: Job, state: holdfast.State) -> None:
        self._job = job
        self._state = state
        self._metrics = state.ops.hybrid.consolidator.metrics
        self._reads = Journal(Path(job.folder) / f"reads-{job.slot}")
        self._broken = Journal(Path(job.folder) / f"broken-{job.slot}")
        self._events: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        self._offsets: dict[Path, int] = {}
        self._most: dict[str, int] = {}
        self._state_most: dict[str, int] = {}

    async def run(self) -> None:
        """One session after the other."""
        done = 0
        while not self._job.stopped():
            self._read_on()
            for session, events in self._events.items():
                before = self._metrics.degraded_reads
                try:
                    found = await self._look(session, events, self._counts.get(session, 0))
                except ERRORS:
                    continue
                reply = self._metrics.degraded_reads > before
                done += 1
                self._reads.note(done, int(reply), len(found))
                for problem in found:
                    if not reply:
                        self._broken.note("reader", session, problem)

    def _read_on(self) -> None:
        """Learn what was acknowledged before the reads that follow."""
        for path in Path(self._job.folder).glob("writer-*"):
            with path.open("rb") as journal:
                journal.seek(self._offsets.get(path, 0))
                whole = journal.read().rpartition(b"\n")[0]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole) + bool(whole)
            for line in whole.decode().splitlines():
                what, session, name = line.split(" ")
                if what == "event":
                    self._events.setdefault(session, []).append(name)
                else:
                    self._counts[session] = int(name)

    async def _look(self, session: str, events: list[str], count: int) -> list[str]:
        """What is missing of what was acknowledged, and what was seen before and is not now."""
        history, problems = self._state.history, []
        there = await history.count_messages(agent(session), session_id=session)
        newest = await history.get_messages(agent(session), session_id=session, recent_limit=20)
        state = (await self._state.short_term.get_state(session)).get("count", 0)
        woken = await self._state.memory(agent(session), session_id=session).hydrate()
        if there < len(events):
            problems.append(f"count_messages {there} of {len(events)}")
        if there < self._most.get(session, 0):
            problems.append(f"count_messages went back to {there}")
        if len(newest) < 20 and not {one.id for one in newest}.issuperset(events):
            problems.append("get_messages misses some")
        if state < max(count, self._state_most.get(session, 0)):
            problems.append(f"state {state} of {count}")
        if woken.status == "new":
            problems.append("hydrate says new")
        if count and woken.state_as_of is not None:
            problems.append("hydrate reports a loss of the state")
        self._most[session] = max(there, self._most.get(session, 0))
        self._state_most[session] = max(state, self._state_most.get(session, 0))
        return problems


async def note_evictions(job: Job, state: holdfast.State) -> None:
    """Write down how many states this process has evicted, again and again."""
    journal, before = Journal(Path(job.folder) / f"evicted-{job.slot}"), 0
    while True:
        if (now := state.ops.hybrid.consolidator.metrics.evicted) > before:
            journal.note(now)
            before = now
        await asyncio.sleep(0.05)


ROLES: dict[str, type[Writer | Turns | Reader]] = {
    "writer": Writer,
    "turns": Turns,
    "reader": Reader,
}


async def main() -> None:
    """Do what the role does until the run is over."""
    job = Job.read()
    opening = holdfast.open(job.postgres, redis=job.redis, settings=job.settings())
    async with opening as state:
        evictions = asyncio.create_task(note_evictions(job, state))
        await ROLES[sys.argv[1]](job, state).run()
        evictions.cancel()


if __name__ == "__main__":
    asyncio.run(main())
