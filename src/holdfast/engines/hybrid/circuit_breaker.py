"""A circuit breaker for the hot store: calls time out early, and fail at once after an outage."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from holdfast.engines.deadlines import Deadlines
from holdfast.values.errors import HoldfastError, TimedOutError, UnavailableError

T = TypeVar("T")

DOUBT_SECONDS = 10.0
"""How long after an outage other processes may still treat the hot store as down."""

DOWN_SECONDS = 1.0
"""How long after a failure calls fail at once, without a call to the hot store."""


class HotStoreDownError(Exception):
    """The hot store is down or did not answer in time.

    ``sure``: the call had no effect. Otherwise the hot store may have executed it.
    """

    def __init__(self, why: str, *, sure: bool) -> None:
        super().__init__(why)
        self.sure = sure


class CircuitBreaker:
    """The circuit breaker that all stores of a ``State`` share for their hot store.

    A call times out after ``patience_seconds``, or up to a quarter later. ::

        breaker = CircuitBreaker(broken_at=lambda: engine.broken_at)
        window = await breaker.call(lambda: hot.window("s1"))
    """

    def __init__(
        self,
        patience_seconds: float = 3.0,
        *,
        broken_at: Callable[[], float] = lambda: -math.inf,
    ) -> None:
        self.patience_seconds = patience_seconds
        self._deadlines: Deadlines[asyncio.Task[Any]] = Deadlines(patience_seconds, self._give_up)
        self._broken_at = broken_at
        self._down_at = -math.inf
        self.down_until = 0.0
        self._failed = False
        self._given_up: dict[asyncio.Task[Any], int] = {}

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call the hot store and return its answer. A task makes one call at a time.

        Raises ``HotStoreDownError`` if the hot store is down or does not answer in time.
        """
        now = time.monotonic()
        if now < self.down_until:
            raise HotStoreDownError("the hot store did not answer a moment ago", sure=True)
        if self._failed:
            # This call probes whether the hot store is back. Until it returns, others fail at once.
            self.down_until = now + self.patience_seconds + DOWN_SECONDS
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._deadlines.start(task)
        try:
            answer = await ask()
        except UnavailableError as error:
            self._mark_down()
            raise HotStoreDownError(str(error), sure=True) from error
        except asyncio.CancelledError as error:
            if self._was_given_up(task):
                self._mark_down()
                why = f"the hot store did not answer in {self.patience_seconds:g} s"
                raise HotStoreDownError(why, sure=False) from error
            self.down_until = 0.0  # the next call probes
            raise
        except TimedOutError:
            self._mark_down()
            raise
        except HoldfastError:
            # The hot store refused the call, so it is up.
            self._mark_up()
            raise
        finally:
            self._deadlines.end(task)
        if self._failed:
            self._mark_up()
        return answer

    def _mark_up(self) -> None:
        self._failed, self.down_until = False, 0.0

    def _was_given_up(self, task: asyncio.Task[Any]) -> bool:
        """Return whether this breaker, and no other code, cancelled the task."""
        if task not in self._given_up:
            return False
        return task.uncancel() <= self._given_up.pop(task)

    @property
    def doubt(self) -> bool:
        """Whether the hot store was down a moment ago.

        Other processes may then still write to the durable store only. They stop within
        ``DOUBT_SECONDS`` after the hot store is back. Until then callers compare what the hot
        store returns with the durable store.
        """
        return time.monotonic() - max(self._down_at, self._broken_at()) < DOUBT_SECONDS

    def _mark_down(self) -> None:
        self._down_at = time.monotonic()
        self._failed, self.down_until = True, time.monotonic() + DOWN_SECONDS

    def _give_up(self, task: asyncio.Task[Any]) -> None:
        """Cancel a call that has timed out."""
        self._given_up[task] = task.cancelling()
        task.cancel()
