"""Agents to be killed while they record: ``python -m holdfast.chaos.memory_agent``, told by a job.

Before it sends an event, an agent writes down what it will send; after the acknowledgement it
writes that down too. Who takes its place after a kill finishes what was begun, under the same id,
since nobody knows whether it was done.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from holdfast.chaos.job import Job, note, stop_file
from holdfast.values.errors import BackPressureError, EngineError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.state import State

RETRY_SECONDS = 0.05


def journal_of(folder: Path, slot: int) -> Path:
    """Where the agents of a process write down what they do.

    ::

        lines = journal_of(folder, 0).read_text().splitlines()
    """
    return folder / f"agents-{slot}"


def agent_of(session: str) -> AgentId:
    """Whose session it is.

    >>> str(agent_of("s3"))
    'chaos/a3'
    """
    return AgentId("chaos", f"a{session[1:]}")


@dataclass(slots=True)
class Diary:
    """What the agents of a process have written down, in order.

    >>> diary = Diary()
    >>> diary.add("7 try s0 e1 0 2030-01-01T00:00:00+00:00")
    >>> diary.begun["s0"].id
    'e1'
    >>> diary.add("7 ack s0 e1 0 0.001")
    >>> diary.acknowledged, diary.begun
    ({'s0': {'e1': '7'}}, {})
    """

    acknowledged: dict[str, dict[str, str]] = field(default_factory=dict)
    """By session, the ids of events in the order in which they were acknowledged, and their writer:
    a process, or two, where one began and its successor sent it again."""
    begun: dict[str, Event] = field(default_factory=dict)
    """What was sent and not acknowledged, by session."""
    fallback_events: int = 0
    retries: int = 0
    longest_seconds: float = 0.0
    _writers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Diary:
        """All of it; nothing where nothing was written."""
        diary = cls()
        if path.exists():
            # What a kill cut short is not a line.
            for line in path.read_text().split("\n")[:-1]:
                diary.add(line)
        return diary

    def add(self, line: str) -> None:
        """One line."""
        pid, what, session, *rest = line.split(" ")
        match what:
            case "try":
                event_id, number, at = rest
                self._writers[session] = pid
                self.begun[session] = Event(
                    agent_of(session),
                    session,
                    "observation",
                    {"number": int(number)},
                    id=event_id,
                    occurred_at=datetime.fromisoformat(at),
                )
            case "ack":
                event_id, fallback_events, seconds = rest
                first = self._writers[session]
                writer = pid if first == pid else f"{first} and {pid}"
                self.acknowledged.setdefault(session, {})[event_id] = writer
                self.begun.pop(session, None)
                self.fallback_events += int(fallback_events)
                self.longest_seconds = max(self.longest_seconds, float(seconds))
            case "again":
                self.retries += 1


class Recorder:
    """The agents of one process, one session each."""

    def __init__(self, job: Job, state: State) -> None:
        self._state = state
        self._pace = job.pace_seconds
        self._journal = journal_of(Path(job.folder), job.slot)
        self._stop = stop_file(Path(job.folder))
        self._diary = Diary.read(self._journal)
        self._fallback = 0
        self._sessions = [f"s{job.slot * job.sessions + at}" for at in range(job.sessions)]

    async def run(self) -> None:
        """Record until told to stop, then end what was begun."""
        async with asyncio.TaskGroup() as agents:
            for session in self._sessions:
                agents.create_task(self._record(session))

    async def _record(self, session: str) -> None:
        """One event after the other, each until it is acknowledged."""
        own = random.Random(session)  # noqa: S311 - only how long things take
        count = len(self._diary.acknowledged.get(session, {}))
        begun = self._diary.begun.get(session)
        if begun is not None:
            await self._send(begun)
            count += 1
        while not self._stop.exists():
            event = Event(agent_of(session), session, "observation", {"number": count})
            at = event.occurred_at.isoformat()
            note(self._journal, "try", session, event.id, count, at)
            await self._send(event)
            count += 1
            await asyncio.sleep(own.uniform(0.5, 1.5) * self._pace)

    async def _send(self, event: Event) -> None:
        begun = time.monotonic()
        while True:
            try:
                await self._state.episodes.append([event])
                break
            except (EngineError, BackPressureError):
                note(self._journal, "again", event.session_id)
                await asyncio.sleep(RETRY_SECONDS)
        fallback_events = self._state.ops.hybrid.consolidator.metrics.fallback_events
        seconds = round(time.monotonic() - begun, 3)
        note(
            self._journal,
            "ack",
            event.session_id,
            event.id,
            fallback_events - self._fallback,
            seconds,
        )
        self._fallback = fallback_events


async def main(job: Job) -> None:
    """Record until the run ends, or this process."""
    settings = job.settings(max_connections=6)
    async with open_state(job.url, redis=job.redis, settings=settings, background=False) as state:
        job.begun()
        await Recorder(job, state).run()


if __name__ == "__main__":
    asyncio.run(main(Job.read()))
