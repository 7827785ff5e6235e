"""Calls to the hot store with little patience, and with none for a moment after it failed."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast.kernel.core.errors import HoldfastError, TimedOutError, UnavailableError

T = TypeVar("T")

DOUBT_SECONDS = 10.0
"""For how long after a broken connection others may take the hot store for away."""

DOWN_SECONDS = 1.0
"""For how long a hot store that did not answer is not asked again."""


class SilentError(Exception):
    """The hot store does not answer; unless it is ``sure``, what was asked may have been done."""

    def __init__(self, why: str, *, sure: bool) -> None:
        super().__init__(why)
        self.sure = sure


class Reach:
    """What all stores of a ``State`` know about whether their hot store answers.

    One timer watches all calls: a timer for each would cost as much as the call itself. So a call
    is given up after ``patience_seconds`` and at most a quarter more. ::

        reach = Reach(broken_at=lambda: engine.broken_at)
        window = await reach.call(lambda: hot.window("s1"))
    """

    def __init__(
        self,
        patience_seconds: float = 3.0,
        *,
        broken_at: Callable[[], float] = lambda: -math.inf,
    ) -> None:
        self.patience_seconds = patience_seconds
        self._broken_at = broken_at
        self._down_at = -math.inf
        self.down_until = 0.0
        self._failed = False
        self._since: dict[asyncio.Task[Any] | None, float] = {}
        self._given_up: dict[asyncio.Task[Any], int] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the hot store, one call of a task at a time; ``SilentError`` without an answer."""
        now = time.monotonic()
        if now < self.down_until:
            raise SilentError("the hot store did not answer a moment ago", sure=True)
        if self._failed:
            # One finds out whether it is back; the others do not wait for it.
            self.down_until = now + self.patience_seconds + DOWN_SECONDS
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        self._since[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self.patience_seconds / 4, self._look)
        try:
            answer = await ask()
        except UnavailableError as error:
            self._mark_down()
            raise SilentError(str(error), sure=True) from error
        except asyncio.CancelledError as error:
            if self._was_given_up(task):
                self._mark_down()
                why = f"the hot store did not answer in {self.patience_seconds:g} s"
                raise SilentError(why, sure=False) from error
            self.down_until = 0.0  # the next one finds out
            raise
        except TimedOutError:
            self._mark_down()
            raise
        except HoldfastError:
            # It refused, so it answers.
            self._mark_up()
            raise
        finally:
            del self._since[task]
        if self._failed:
            self._mark_up()
        return answer

    def _mark_up(self) -> None:
        self._failed, self.down_until = False, 0.0

    def _was_given_up(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether a task was cancelled here, and by nobody else."""
        if task is None or task not in self._given_up:
            return False
        return task.uncancel() <= self._given_up.pop(task)

    @property
    def doubt(self) -> bool:
        """Whether the hot store was away a moment ago: others may still be writing past it.

        They stop within ``DOUBT_SECONDS`` of its return. Until then what the hot store says is
        compared with what the durable one has.
        """
        return time.monotonic() - max(self._down_at, self._broken_at()) < DOUBT_SECONDS

    def _mark_down(self) -> None:
        self._down_at = time.monotonic()
        self._failed, self.down_until = True, time.monotonic() + DOWN_SECONDS

    def _look(self) -> None:
        """Give up the calls that have had no answer for too long."""
        loop = asyncio.get_running_loop()
        for task, since in self._since.items():
            late = loop.time() - since >= self.patience_seconds
            if late and task is not None and task not in self._given_up:
                self._given_up[task] = task.cancelling()
                task.cancel()
        again = self.patience_seconds / 4
        self._timer = loop.call_later(again, self._look) if self._since else None
