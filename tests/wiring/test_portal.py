"""One state for every thread and event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import State
from holdfast.blocking import Portal
from holdfast.errors import ConfigError

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _add(state: State, key: str) -> int:
    await state.short_term.update_state("s1", {key: True})
    return len(await state.short_term.get_state("s1"))


def _in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


async def test_three_threads_and_two_loops_use_one_state() -> None:
    async with holdfast.open("memory:") as state:
        portal = Portal(state)

        async def from_another_loop() -> None:
            for at in range(20):
                await portal.arun(_add(state, f"loop {at}"))

        def from_a_thread(name: str) -> None:
            for at in range(20):
                portal.run(_add(state, f"{name} {at}"))

        threads = [
            _in_thread(lambda: from_a_thread("a")),
            _in_thread(lambda: from_a_thread("b")),
            _in_thread(lambda: asyncio.run(from_another_loop())),
        ]
        for at in range(20):
            await portal.arun(_add(state, f"own {at}"))
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert len(await state.short_term.get_state("s1")) == 80


async def test_a_call_that_waits_on_the_loop_of_its_state_is_refused_by_name() -> None:
    async with holdfast.open("memory:") as state:
        portal = Portal(state)
        with pytest.raises(ConfigError, match="its name begins with an a"):
            portal.run(_add(state, "x"))
        assert await portal.arun(_add(state, "y")) == 1


async def test_a_loop_that_has_ended_is_an_error_and_not_a_wait_without_end() -> None:
    async def opened() -> Portal:
        return Portal(await holdfast.open("memory:"))

    portal = await asyncio.to_thread(lambda: asyncio.run(opened()))
    with pytest.raises(ConfigError, match=r"Portal\.open"):
        await asyncio.to_thread(lambda: portal.run(_add(portal.state, "x")))
    with pytest.raises(ConfigError, match=r"Portal\.open"):
        await portal.arun(_add(portal.state, "x"))


async def test_an_opened_portal_works_where_a_loop_runs_and_is_closed_once() -> None:
    with Portal.open("memory:", tenant="acme") as portal:
        assert portal.state.tenant == "acme"
        # As in a notebook, whose loop runs while a cell calls a method that waits.
        assert portal.run(_add(portal.state, "x")) == 1
        assert await portal.arun(_add(portal.state, "y")) == 2
    portal.close()
    with pytest.raises(ConfigError, match="is closed"):
        portal.run(_add(portal.state, "z"))


async def test_a_portal_that_cannot_be_opened_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with pytest.raises(ConfigError):
        Portal.open("nonsense:")
    assert threading.active_count() == before


@pytest.mark.parametrize("own", [True, False])
async def test_work_that_has_begun_settles_before_a_cancellation_is_raised(*, own: bool) -> None:
    async with holdfast.open("memory:") as state:
        portal, begun, go_on = Portal(state), asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            begun.set()
            await go_on.wait()
            await state.short_term.set_state("s1", {"done": True})

        async def cancelled() -> None:
            task = asyncio.ensure_future(portal.arun(slow()))
            await (begun.wait() if own else asyncio.to_thread(lambda: portal.run(begun.wait())))
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            if own:
                go_on.set()
            else:
                state.loop.call_soon_threadsafe(go_on.set)
            with pytest.raises(asyncio.CancelledError):
                await task

        if own:
            await cancelled()
        else:
            await asyncio.to_thread(lambda: asyncio.run(cancelled()))
        assert await state.short_term.get_state("s1") == {"done": True}


@pytest.mark.parametrize("own", [True, False])
async def test_work_that_need_not_settle_is_cancelled_with_its_caller(*, own: bool) -> None:
    async with holdfast.open("memory:") as state:
        portal, begun, ended = Portal(state), asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def cancelled() -> None:
            task = asyncio.ensure_future(portal.arun(wait(), settle=False))
            await (begun.wait() if own else asyncio.to_thread(lambda: portal.run(begun.wait())))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        if own:
            await cancelled()
        else:
            await asyncio.to_thread(lambda: asyncio.run(cancelled()))
        await ended.wait()


async def test_a_child_of_a_fork_is_told_to_open_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with holdfast.open("memory:") as state:
        portal = Portal(state)
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ConfigError, match="fork"):
            await portal.arun(_add(state, "x"))


class _DeathError(BaseException):
    """As what some libraries raise: no error that ``except Exception`` catches."""


@pytest.mark.parametrize("error", [ValueError("no"), _DeathError()])
@pytest.mark.parametrize("settle", [False, True])
async def test_a_caller_gets_whatever_its_work_raises(
    error: BaseException, *, settle: bool
) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise error

    async with holdfast.open("memory:") as state, asyncio.timeout(60):
        with pytest.raises(type(error)):
            await Portal(state).arun(work(), settle=settle)
