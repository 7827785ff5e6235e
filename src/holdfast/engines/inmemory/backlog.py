"""Counts the waiting work of all tenants, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.tasks.data import LedgerData
from holdfast.spi.backlog import BacklogStorage
from holdfast.values.backlog import OTHER, Backlog
from holdfast.values.lifecycle import TERMINAL


class InMemoryBacklog(BacklogStorage):
    """Counts the waiting work of all tenants in this process.

    >>> storage = InMemoryBacklog(InMemory())
    """

    def __init__(self, engine: InMemory) -> None:
        self._engine = engine

    async def backlog(self, agents: Sequence[str], limit: int) -> Backlog:
        """Count waiting work; at most ``limit`` tasks of each state are counted."""
        now = self._engine.now()
        named, counted, states = set(agents), Counter[tuple[str, str]](), Counter[str]()
        oldest = 0.0
        for _, data in sorted(self._engine.by_tenant(LedgerData).items()):
            if data.queue:
                oldest = max(oldest, (now - data.queue[0][0]).total_seconds())
            for task in data.tasks.values():
                state = task.state.value
                if task.state in TERMINAL or states[state] >= limit:
                    continue
                states[state] += 1
                agent = str(task.agent)
                counted[state, agent if agent in named else OTHER] += 1
        return Backlog(dict(counted), oldest)
