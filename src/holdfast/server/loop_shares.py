"""Divides the time of the event loop fairly between callers.

Some requests are expensive: ten thousand JSON values take a tenth of a second to convert, and
nothing else runs meanwhile. A caller that sends many of them must leave time for the others.
"""

from __future__ import annotations

import asyncio
import time
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

R = TypeVar("R")
Share = tuple[str, str]
"""A caller whose time is counted: a tenant and an owner."""

NOBODY: Share = ("", "")
"""The share that all requests without a key use together."""

LIGHT_PART = 0.1
"""A caller that uses a smaller part of the event loop than this never waits."""

FREE_SECONDS = 0.05
"""Burst: how far a caller may exceed that part, and all heavy callers together half the loop."""

MOST_SECONDS = 1.0
"""Maximum debt of a caller: after this time it no longer waits for past use."""

RECENT_SECONDS = 1.0
"""Heavy callers leave time for the callers that ran within this time."""

_MOST_IDLE = 1_000


class _Account:
    """Time used on the event loop, compared with the part of it that may be used."""

    def __init__(self, part: float) -> None:
        self._rest = (1 - part) / part
        self._paid_at = 0.0
        self.ran_at = 0.0

    def charge(self, started: float, now: float) -> None:
        """Add the time of a step."""
        owed = (now - started) * self._rest
        before = max(self._paid_at - started, 0.0)
        self._paid_at = now + min(before + owed, max(owed, MOST_SECONDS))
        self.ran_at = now

    def seconds_ahead(self, now: float) -> float:
        """Return how many seconds to pause until the use is within its part; 0 or less if it is."""
        return self._paid_at - now - FREE_SECONDS


class _Caller:
    """One caller's use of the loop, and the lock with which its own requests take turns."""

    def __init__(self) -> None:
        self.used = _Account(LIGHT_PART)
        self.open = 0
        self.turn = asyncio.Lock()


class LoopShares:
    """Runs the requests of all callers, so that no caller blocks the event loop for the others.

    A request runs in steps, from one ``await`` to the next. The time of each step is charged to
    its caller. Callers that use more than a tenth of the loop are heavy. All heavy callers
    together use half of the loop while others run, and take turns for it.

    ::

        answer = await shares.run(("acme", "ana"), handle(request))
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: dict[Share, _Caller] = {}
        self._heavy = _Account(0.5)
        self._turn = asyncio.Lock()

    async def run(self, who: Share, request: Coroutine[Any, Any, R]) -> R:
        """Run a request of a caller."""
        with self._opened(who) as caller:
            return await self._in_steps(caller, request)

    async def iterate(self, who: Share, items: AsyncIterator[R]) -> AsyncIterator[R]:
        """Yield the items of a caller's stream; the time of each is charged like a request."""
        while True:
            try:
                item = await self.run(who, _next(items))
            except StopAsyncIteration:
                return
            yield item

    @contextmanager
    def _opened(self, who: Share) -> Iterator[_Caller]:
        caller = self._callers.setdefault(who, _Caller())
        caller.open += 1
        try:
            yield caller
        finally:
            caller.open -= 1
            if len(self._callers) > _MOST_IDLE:
                self._forget_idle()

    @types.coroutine
    def _in_steps(self, caller: _Caller, request: Coroutine[Any, Any, R]) -> Generator[Any, Any, R]:
        """Run a coroutine as ``await`` does, but charge each step and wait before it if needed."""
        error: BaseException | None = None
        while True:
            if error is None and self._must_wait(caller):
                try:
                    yield from self._wait(caller).__await__()
                except BaseException as thrown:  # noqa: BLE001 - it is the request's to handle
                    error = thrown
            started = self._clock()
            try:
                awaited = request.send(None) if error is None else request.throw(error)
            except StopIteration as ended:
                result: R = ended.value
                return result
            finally:
                self._charge(caller, started)
                error = None
            try:
                yield awaited
            except BaseException as thrown:  # noqa: BLE001 - it is the request's to handle
                error = thrown

    def _charge(self, caller: _Caller, started: float) -> None:
        now = self._clock()
        caller.used.charge(started, now)
        if self._is_heavy(caller):
            self._heavy.charge(started, now)

    def _is_heavy(self, caller: _Caller) -> bool:
        return caller.used.seconds_ahead(self._clock()) > 0

    def _must_wait(self, caller: _Caller) -> bool:
        return self._heavy.seconds_ahead(self._clock()) > 0 and self._is_heavy(caller)

    async def _wait(self, caller: _Caller) -> None:
        """Wait for the caller's other requests, the other heavy callers, then the light ones."""
        async with caller.turn, self._turn:
            await asyncio.sleep(0)
            if self._must_wait(caller) and self._others_run():
                await asyncio.sleep(self._heavy.seconds_ahead(self._clock()))

    def _others_run(self) -> bool:
        since = self._clock() - RECENT_SECONDS
        return any(
            one.used.ran_at > since and not self._is_heavy(one) for one in self._callers.values()
        )

    def _forget_idle(self) -> None:
        since = self._clock() - RECENT_SECONDS
        self._callers = {
            who: one
            for who, one in self._callers.items()
            if one.open or one.used.ran_at > since or self._is_heavy(one)
        }


async def _next(items: AsyncIterator[R]) -> R:
    return await anext(items)
