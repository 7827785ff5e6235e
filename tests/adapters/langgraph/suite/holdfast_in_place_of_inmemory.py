"""A pytest plugin: LangGraph's own tests of its ``InMemoryStore`` run on ``HoldfastStore``.

It is loaded with ``-p`` in a process that has the framework's ``tests`` package and not ours.
"""

from __future__ import annotations

import os
from typing import Any

from langgraph.store import memory

from holdfast import State
from holdfast.adapters.langgraph import HoldfastStore
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref

PORTAL = Portal.open(os.environ["SUITE_URL"])


async def _tenant() -> State:
    return PORTAL.state.for_tenant(new_ref())


class InMemoryStore(HoldfastStore):
    """A store of its own for each test."""

    made = 0

    def __init__(self, *, index: Any = None) -> None:
        InMemoryStore.made += 1
        super().__init__(PORTAL.run(_tenant()), index=index)


memory.InMemoryStore = InMemoryStore


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many stores the tests made, so that a run without any is noticed."""
    terminalreporter.write_line(f"holdfast stores: {InMemoryStore.made}")
