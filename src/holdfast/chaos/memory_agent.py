"""Agents that are killed while they record; run by ``python -m holdfast.chaos.memory_agent``.

The process reads its job from standard input. An agent writes to its journal before it sends an
event and after the acknowledgement. Its successor after a kill sends an unacknowledged event again
under the same id, because the event may or may not be stored.
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
    """Return the path of the journal of a process's agents.

    ::

        lines = journal_of(folder, 0).read_text().splitlines()
    """
    return folder / f"agents-{slot}"


def agent_of(session: str) -> AgentId:
    """Return the agent of a session.

    >>> str(agent_of("s3"))
    'chaos/a3'
    """
    return AgentId("chaos", f"a{session[1:]}")


@dataclass(slots=True)
class Diary:
    """The parsed lines of a journal, in order.

    >>> diary = Diary()
    >>> diary.add("7 try s0 e1 0 2030-01-01T00:00:00+00:00")
    >>> diary.begun["s0"].id
    'e1'
    >>> diary.add("7 ack s0 e1 0 0.001")
    >>> diary.acknowledged, diary.begun
    ({'s0': {'e1': '7'}}, {})
    """

    acknowledged: dict[str, dict[str, str]] = field(default_factory=dict)
    """By session: event ids in order of acknowledgement, with their writer. The writer is one
    process, or two if one sent the event and its successor sent it again."""
    begun: dict[str, Event] = field(default_factory=dict)
    """By session: the event that was sent and not acknowledged."""
    fallback_events: int = 0
    retries: int = 0
    longest_seconds: float = 0.0
    _writers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Diary:
        """Read a journal; empty if the file does not exist."""
        diary = cls()
        if path.exists():
            # Text after the last newline is a line that a kill cut short: skip it.
            for line in path.read_text().split("\n")[:-1]:
                diary.add(line)
        return diary

    def add(self, line: str) -> None:
        """Parse one line of the journal and add it."""
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
    """Runs the agents of one process, one session each."""

    def __init__(self, job: Job, state: State) -> None:
        self._state = state
        self._pace = job.pace_seconds
        self._journal = journal_of(Path(job.folder), job.slot)
        self._stop = stop_file(Path(job.folder))
        self._diary = Diary.read(self._journal)
        self._fallback = 0
        self._sessions = [f"s{job.slot * job.sessions + at}" for at in range(job.sessions)]

    async def run(self) -> None:
        """Record until the stop file exists, then finish the events that were sent."""
        async with asyncio.TaskGroup() as agents:
            for session in self._sessions:
                agents.create_task(self._record(session))

    async def _record(self, session: str) -> None:
        """Record events one by one, retrying each until it is acknowledged."""
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
    """Record until the run ends or this process is killed."""
    settings = job.settings(max_connections=6)
    async with open_state(job.url, redis=job.redis, settings=settings, background=False) as state:
        job.begun()
        await Recorder(job, state).run()


if __name__ == "__main__":
    asyncio.run(main(Job.read()))
