"""An erasure that is interrupted anywhere goes on, and no late write brings anything back."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

import holdfast
from holdfast import Channel, ChatMessage, Settings, State
from holdfast.errors import ConflictError
from holdfast.values.failpoints import failpoint
from holdfast.values.ids import new_ref
from tests.erasure.world import AGENT, SESSION, fill, seen
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")


class _Killed(BaseException):
    """Ends an erasure as the death of its process would: nothing catches it."""


@pytest.mark.parametrize(
    "point", ["erase.after_begin", "erase.after_shred", "erase.after_delete", "erase.after_pass"]
)
@pytest.mark.parametrize("after", [0, 1, 5])
async def test_an_interrupted_erasure_goes_on(state: State, point: str, after: int) -> None:
    ana, left = state.for_owner("ana"), after
    ids = await fill(ana, "ana")
    bobs = await fill(state.for_owner("bob"), "bob")
    was = await seen(state.for_owner("bob"), bobs)
    whole = await state.erase(subject="ana", dry_run=True)

    def die() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Killed

    with failpoint(point, die):
        try:
            await state.erase(subject="ana")
        except _Killed:
            [record] = [one async for one in state.ops.erasures()]
            assert (record.scope_id, record.finished) == ("ana", False)
    report = await state.erase(subject="ana")
    if left < 0:
        # It is the same erasure: its receipt has what there was when it began.
        [record] = [one async for one in state.ops.erasures()]
        assert report.counts == record.counts == whole.counts
    assert await seen(ana, ids) == {}
    assert await seen(state.for_owner("bob"), bobs) == was


_DYING = """
import asyncio, os, signal, sys
import holdfast
from holdfast.values.failpoints import failpoint

left = int(sys.argv[3])

def die():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with holdfast.open(sys.argv[1], tenant=sys.argv[2]) as state:
        with failpoint("erase.after_delete", die):
            await state.erase(subject="ana")

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [0, 2, 4])
async def test_an_erasure_whose_process_is_killed_goes_on(database: str, after: int) -> None:
    tenant = new_ref()
    async with holdfast.open(
        database, tenant=tenant, settings=Settings(max_connections=6)
    ) as state:
        ana = state.for_owner("ana")
        ids = await fill(ana, "ana")
        whole = await state.erase(subject="ana", dry_run=True)
        for _ in range(2):
            dying = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _DYING, database, tenant, str(after)
            )
            assert await dying.wait() == -signal.SIGKILL
        report = await state.erase(subject="ana")
        assert report.counts == whole.counts
        assert await seen(ana, ids) == {}
        assert [one.number async for one in state.ops.erasures()] == [1]


async def test_a_dry_run_deletes_nothing_and_leaves_no_record(state: State) -> None:
    ana = state.for_owner("ana")
    ids = await fill(ana, "ana")
    was = await seen(ana, ids)
    await state.erase(subject="ana", dry_run=True)
    assert await seen(ana, ids) == was
    assert [one async for one in state.ops.erasures()] == []


async def test_a_writer_that_never_stops_is_an_error_and_the_erasure_stays_open(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = state.for_owner("ana")
    await ana.channel("news").publish({"n": 0})
    clear = Channel.clear

    async def stubborn(self: Channel) -> None:
        await clear(self)
        await ana.channel("news").publish({"n": 1})

    with monkeypatch.context() as patch:
        patch.setattr(Channel, "clear", stubborn)
        with pytest.raises(ConflictError, match="stop them"):
            await state.erase(subject="ana")
    [record] = [one async for one in state.ops.erasures()]
    assert not record.finished
    assert (await state.erase(subject="ana")).counts == record.counts == {"channels": 1}


async def test_a_late_flush_brings_nothing_back(database: str) -> None:
    """Two processes on one Redis: what one has not flushed is gone with the session."""
    redis, tenant, settings = valkey().url, new_ref(), Settings(max_connections=6)
    async with (
        holdfast.open(database, redis=redis, tenant=tenant, settings=settings) as writer,
        holdfast.open(database, redis=redis, tenant=tenant, settings=settings) as operator,
    ):
        ana = writer.for_owner("ana")
        for n in range(50):
            await ana.history.append(AGENT, ChatMessage.user(f"m{n}"), session_id=SESSION)
            await ana.short_term.set_state(SESSION, {"n": n})
        await operator.erase(subject="ana")
        await writer.ops.hybrid.consolidator.drain()
        await operator.ops.hybrid.consolidator.drain()
        for state in (writer, operator):
            view = state.for_owner("ana")
            assert await view.history.get_messages(AGENT, session_id=SESSION) == []
            assert await view.short_term.get_state(SESSION) == {}
            assert (await state.erase(subject="ana", dry_run=True)).counts == {}


async def test_a_late_flush_brings_nothing_of_a_session_about_a_subject_back(
    database: str,
) -> None:
    redis, tenant, settings = valkey().url, new_ref(), Settings(max_connections=6)
    async with (
        holdfast.open(database, redis=redis, tenant=tenant, settings=settings) as writer,
        holdfast.open(database, redis=redis, tenant=tenant, settings=settings) as operator,
    ):
        ben = writer.for_owner("ben")
        for session, subject in ((SESSION, "ana"), ("other", "carl")):
            await ben.episodes.start_session(AGENT, session, subject=subject)
            for n in range(50):
                await ben.history.append(AGENT, ChatMessage.user(f"m{n}"), session_id=session)
                await ben.short_term.set_state(session, {"n": n})
        await operator.erase(subject="ana")
        await writer.ops.hybrid.consolidator.drain()
        await operator.ops.hybrid.consolidator.drain()
        for state in (writer, operator):
            view = state.for_owner("ben")
            assert await view.history.get_messages(AGENT, session_id=SESSION) == []
            assert await view.short_term.get_state(SESSION) == {}
            assert await view.history.count_messages(AGENT, session_id="other") == 50
            assert await view.short_term.get_state("other") == {"n": 49}
            assert (await state.erase(subject="ana", dry_run=True)).counts == {}
