"""The part of ``holdfast bench stores`` on row level security: the same calls with and without it.

Three databases of one server have the same data: two with policies, so that their difference shows
the noise, and one without. Each call is made in all three in turn. The ratio of a row is the median
of the ratios of its rounds. Client and server share one core: where they are on two, the smallest
calls take 1.5 times as long whenever the system moves one of them.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.bench.servers import fetch
from holdfast.values.content import ChatMessage
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

ROUNDS = 5
CALLS = 150
AGENT = AgentId.parse("writer")
WORDS = (
    *("harbour", "crane", "tide", "pier", "rope", "anchor"),
    *("buoy", "gale", "mast", "keel", "dock"),
)

WRITES, SMALL_READS = 1.10, 1.20
"""The bars: writes and recall, and the smallest reads."""

OFF = """
DO $$ DECLARE one regclass; BEGIN
    FOR one IN SELECT c.oid::regclass FROM pg_class c
        WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relrowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', one);
    END LOOP;
END $$
"""

Call = Callable[[State, int], Awaitable[Any]]


def _text(at: int) -> str:
    return " ".join(WORDS[(at * step + at // 7) % len(WORDS)] for step in (1, 2, 3, 5, 7, 11))


CASES: dict[str, tuple[float, Call]] = {
    "history: append one": (
        WRITES,
        lambda s, n: s.history.append(AGENT, ChatMessage.user(_text(n)), session_id="new"),
    ),
    "history: last 20": (
        SMALL_READS,
        lambda s, _: s.history.get_messages(AGENT, session_id="s1", limit=20),
    ),
    "state: patch": (WRITES, lambda s, n: s.short_term.update_state("s1", {"step": n})),
    "state: get": (SMALL_READS, lambda s, _: s.short_term.get_state("s1")),
    "recall: 5 of 5,000": (WRITES, lambda s, n: s.episodes.recall(AGENT, _text(n), limit=5)),
    "task: submit": (WRITES, lambda s, n: s.tasks.submit("other", ChatMessage.user(_text(n)))),
    "task: list one": (SMALL_READS, lambda s, _: s.tasks.list(agent="writer", limit=1)),
    "board: create": (
        WRITES,
        lambda s, n: s.boards.create_task_list(f"c{n}", [_text(n)], agent_id="writer"),
    ),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs with policies and without them."""

    name: str
    on_us: float
    off_us: float
    ratio: float
    """The time with policies over that without: the median of the rounds."""
    same_twice: float
    """The same of the two databases with policies, whose difference is noise."""
    bar: float

    @property
    def met(self) -> bool:
        """Whether the ratio is at most the bar."""
        return self.ratio <= self.bar

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return asdict(self) | {"met": self.met}


async def run(url: str, progress: Callable[[str], None], *, quick: bool = False) -> list[Cost]:
    """Measure all calls in three databases of a server whose superuser ``url`` names.

    ::

        costs = await run(url, print, quick=True)
    """
    states: list[State] = []
    try:
        async with _one_core(url):
            for name in ("policies", "policies_again", "no_policies"):
                progress(f"filling {name}")
                states.append(await _filled(url, name))
            found = []
            for name, case in CASES.items():
                progress(f"policies on and off: {name}")
                found.append(await _cost(name, states, case, quick=quick))
    finally:
        for state in states:
            await state.aclose()
    return found


@asynccontextmanager
async def _one_core(url: str) -> AsyncIterator[None]:
    """Keep this process, and the connections that the server opens meanwhile, on one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    [[folder]] = await fetch(url, "SELECT current_setting('data_directory')")
    postmaster = int((Path(folder) / "postmaster.pid").read_text().partition("\n")[0])
    cores = {pid: os.sched_getaffinity(pid) for pid in (0, postmaster)}
    try:
        for pid, allowed in cores.items():
            os.sched_setaffinity(pid, {min(allowed)})
        yield
    finally:
        for pid, allowed in cores.items():
            os.sched_setaffinity(pid, allowed)


async def _filled(server: str, name: str) -> State:
    """Open a new database with 5,000 turns, a state and a task."""
    await fetch(server, f"CREATE DATABASE {name}")
    url = server.replace("/postgres?", f"/{name}?", 1)
    state = await open_state(url, settings=Settings(auto_migrate=True, max_connections=4))
    try:
        if name == "no_policies":
            await fetch(url, OFF)
        for start in range(0, 5000, 500):
            texts = (_text(at) for at in range(start, start + 500))
            await state.episodes.append(
                [Event.of_message(AGENT, "s1", ChatMessage.user(text)) for text in texts]
            )
        await state.episodes.recall(AGENT, "tide")
        await state.short_term.set_state("s1", {"step": 0, "plan": ["read", "write"]})
        await state.tasks.submit("writer", ChatMessage.user("hello"))
    except BaseException:
        await state.aclose()
        raise
    return state


async def _cost(name: str, states: list[State], case: tuple[float, Call], *, quick: bool) -> Cost:
    bar, call = case
    medians: list[list[float]] = [[], [], []]
    number = 0
    for _ in range(ROUNDS + 1):
        taken: list[list[float]] = [[], [], []]
        for _ in range(CALLS // 10 if quick else CALLS):
            number += 1
            for at in range(3):
                # Each of them is the first of the three as often as the others.
                which = (at + number) % 3
                began = time.perf_counter()
                await call(states[which], number)
                taken[which].append(time.perf_counter() - began)
        for which in range(3):
            medians[which].append(statistics.median(taken[which]) * 1e6)
    # The first round warms the caches.
    first, again, without = (one[1:] for one in medians)
    return Cost(
        name,
        round(statistics.median(first), 1),
        round(statistics.median(without), 1),
        round(statistics.median(a / b for a, b in zip(first, without, strict=True)), 3),
        round(statistics.median(a / b for a, b in zip(again, first, strict=True)), 3),
        bar,
    )
