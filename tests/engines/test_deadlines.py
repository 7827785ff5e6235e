"""One timer for all calls of an engine."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.engines.deadlines import Deadlines

pytestmark = pytest.mark.asyncio


async def test_a_call_without_an_answer_is_late_once() -> None:
    late: list[str] = []
    found = asyncio.Event()

    def tell(key: str) -> None:
        late.append(key)
        found.set()

    deadlines = Deadlines(0.01, tell)
    deadlines.start("slow")
    deadlines.start("fast")
    deadlines.end("fast")
    async with asyncio.timeout(60):
        await found.wait()
        found.clear()
        deadlines.start("second")
        await found.wait()
    assert late == ["slow", "second"]
    deadlines.end("slow")
    deadlines.end("second")
    assert not deadlines.waiting


async def test_a_closed_timer_tells_nobody() -> None:
    late: list[str] = []
    closed, other = Deadlines(0.01, late.append), asyncio.Event()
    closed.start("closed")
    closed.close()
    later: Deadlines[str] = Deadlines(0.05, lambda _: other.set())
    later.start("later")
    async with asyncio.timeout(60):
        await other.wait()
    assert late == []
