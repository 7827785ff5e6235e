"""A pytest plugin: LangGraph's own tests of its engine run on ``HoldfastSaver``.

It takes the place of the two savers on SQLite. It is loaded with ``-p`` in a process that has the
framework's ``tests`` package and not ours. Some of these tests count the calls of ``uuid.uuid4``,
so nothing here may call it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from holdfast import State
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref

PORTAL = Portal.open(os.environ["SUITE_URL"])
MADE = {"async": 0, "sync": 0}


async def _tenant() -> State:
    return PORTAL.state.for_tenant(new_ref())


def _saver(kind: str) -> HoldfastSaver:
    MADE[kind] += 1
    return HoldfastSaver(PORTAL.run(_tenant()))


@contextmanager
def _sync() -> Iterator[HoldfastSaver]:
    yield _saver("sync")


@asynccontextmanager
async def _async() -> AsyncIterator[HoldfastSaver]:
    yield _saver("async")


framework: Any = importlib.import_module("tests.conftest")
framework._checkpointer_sqlite = _sync
framework._checkpointer_sqlite_aio = _async


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many savers the tests made, so that a run without any is noticed."""
    terminalreporter.write_line(f"holdfast savers: {MADE['async']} async, {MADE['sync']} sync")
