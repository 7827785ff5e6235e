"""Access to a ``State`` from any thread and event loop."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from holdfast.values.errors import ConfigError
from holdfast.wiring import front_door
from holdfast.wiring.loop_thread import LoopThread
from holdfast.wiring.state import State

T = TypeVar("T")


class Portal:
    """Runs coroutines on the event loop of an opened ``State``, from any thread and event loop.

    A coroutine that has started on the state's loop runs to its end even if the caller that awaits
    it is cancelled. So a write is never cancelled half way. ::

        async def step(state: State) -> None:
            await state.short_term.set_state("s1", {"step": 1})

        portal = Portal(state)
        portal.run(step(state))
    """

    def __init__(self, state: State) -> None:
        given: object = state
        if not isinstance(given, State):
            raise ConfigError(
                f"state: must be an opened State or a Portal, not {type(given).__name__}: use "
                "`async with holdfast.open(...) as state`, or holdfast.blocking.Portal.open(...)"
            )
        self.state = state
        self._process = os.getpid()
        self._thread: LoopThread | None = None

    @classmethod
    def open(
        cls, url: str | os.PathLike[str] | None = None, **options: Unpack[front_door.OpenOptions]
    ) -> Self:
        """Open a ``State`` on a separate event loop; the arguments are those of ``holdfast.open``.

        Call ``close``, or use it as a context manager; one that is still open is closed when the
        process ends.

        >>> with Portal.open("memory:") as portal:
        ...     portal.state.tenant
        'default'
        """

        async def connect() -> State:
            return await front_door.open(url, **options)

        thread = LoopThread("holdfast.portal")
        try:
            opened = cls(thread.wait_for(connect()))
        except BaseException:
            thread.close()
            raise
        opened._thread = thread
        atexit.register(opened.close)
        return opened

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the state's loop and wait for it. Raises if called on that loop.

        ::

            portal.run(store.put("key"))
        """
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the state's loop and return its future, for a thread to wait on.

        Raises on that loop, where waiting would block it. ::

            begun = portal.start(store.put("key"))
            begun.result()
        """
        try:
            self._check(waits=True)
        except ConfigError:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self.state.loop)

    async def arun(self, work: Coroutine[Any, Any, T], *, settle: bool = True) -> T:
        """Run a coroutine on the state's loop and await it on this one.

        If the caller is cancelled, the coroutine runs to its end first. With ``settle=False`` it is
        cancelled too: use that for reads that wait. ::

            await portal.arun(store.put("key"))
        """
        try:
            self._check(waits=False)
        except ConfigError:
            work.close()
            raise
        if _running() is self.state.loop:
            return await (_to_its_end(work) if settle else work)
        there = asyncio.run_coroutine_threadsafe(work, self.state.loop)
        future = asyncio.wrap_future(there)
        if not settle:
            return await future
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await _settled(future)
            raise

    def close(self) -> None:
        """Close a state that ``open`` opened, and end its thread.

        A second call, or a call for a state that was passed in, has no effect.

        ::

            portal.close()
        """
        thread = self._thread
        if thread is not None and not thread.closed and not thread.forked:
            self.run(self.state.aclose())
            thread.close()
            atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self, *, waits: bool) -> None:
        if os.getpid() != self._process:
            raise ConfigError(
                "this State was opened before a fork: open one in each process, after the fork"
            )
        if self._thread is not None and self._thread.closed:
            raise ConfigError("this State is closed: open another")
        if not self.state.loop.is_running():
            raise ConfigError(
                "the event loop of this State does not run any more: keep it running, or open the "
                "State with Portal.open(), which has a loop of its own"
            )
        if waits and _running() is self.state.loop:
            raise ConfigError(
                "a call that waits would block the event loop of its own State: await the async "
                "method instead (in an adapter its name begins with an a; in a handler use "
                "task.stores), or use Portal.open()"
            )


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a task of its own, which is awaited also if the caller is cancelled."""
    result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(_into(work, result))
    try:
        return await result
    except asyncio.CancelledError:
        await _settled(task)
        raise


async def _into(work: Coroutine[Any, Any, T], result: asyncio.Future[T]) -> None:
    # It sets the result itself: a callback of the task would wake the caller one turn later.
    try:
        found = await work
    except asyncio.CancelledError:
        result.cancel()
        raise
    except BaseException as error:
        # Whatever it is, the caller gets it: it would wait for ever.
        if not result.done():
            result.set_exception(error)
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
    else:
        if not result.done():
            result.set_result(found)


async def _settled(future: asyncio.Future[Any]) -> None:
    """Wait until work is done, however often the caller is cancelled; ignore its outcome."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()
