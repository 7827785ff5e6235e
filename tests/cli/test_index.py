"""``holdfast index`` as an operator runs it."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast.errors import UnavailableError
from holdfast.runtime.indexing import Indexing
from tests.cli.command import Command


def test_what_waits_is_indexed_once(command: Command, database: str, tenant: str) -> None:
    async def record() -> None:
        async with holdfast.open(database, tenant=tenant, background=False) as state:
            memory = state.memory("writer/ana", session_id="s1")
            await memory.record_many([("note", {"note": note}) for note in ("low tide", "moon")])

    async def waiting() -> int:
        async with holdfast.open(database, tenant=tenant, background=False) as state:
            [hit] = await state.memory("writer/ana", session_id="s1").recall("tide")
            assert hit.event.payload == {"note": "low tide"}
            return await state.ops.unindexed_events()

    asyncio.run(record())
    first = command("index", "--once")
    assert (first.code, first.out.startswith("indexed ")) == (0, True)
    assert command("index", "--once").out == "indexed 0 events\n"
    assert asyncio.run(waiting()) == 0


@pytest.mark.asyncio
async def test_an_outage_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    async def index() -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise UnavailableError("postgres", "the server is away")
        indexing.stop()
        return 3

    indexing = Indexing(index, poll_seconds=0.01)
    await asyncio.wait_for(indexing.run(), 60)
    assert calls == 2
    assert "the server is away" in caplog.text
