"""Indexes events for recall, in the process of a worker or a consolidator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from holdfast.runtime.background import Runs
from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.index")
POLL_SECONDS = 1.0
IDLE_POLL_SECONDS = 30.0
"""The longest pause while there is nothing to index; recall indexes what it needs itself."""


class Indexing:
    """Calls ``index`` repeatedly until ``stop`` is called.

    With ``runs``, such as a worker, it also runs that one, and ends when that one ends. ::

        await run_until_signal(Indexing(state.ops.index_pending, runs=worker))
    """

    def __init__(
        self,
        index: Callable[[], Awaitable[int]],
        *,
        runs: Runs | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._call = index
        self._runs = runs
        self._poll_seconds = poll_seconds
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Start to drain."""
        self._stop.set()
        if self._runs is not None:
            self._runs.stop()

    async def run(self) -> None:
        """Run until ``stop`` is called."""
        if self._runs is None:
            await self._index()
            return
        job = asyncio.create_task(self._index())
        try:
            await self._runs.run()
        finally:
            self._stop.set()
            job.cancel()
            with suppress(asyncio.CancelledError):
                await job

    async def _index(self) -> None:
        pause = self._poll_seconds
        while not self._stop.is_set():
            pause = min(pause * 2, max(IDLE_POLL_SECONDS, self._poll_seconds))
            try:
                if done := await self._call():
                    _log.info("indexed", extra={"events": done})
                    pause = self._poll_seconds
            except HoldfastError as error:
                # An outage: the events still wait, and the next round tries again.
                _log.warning("events wait for the index: %s", error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)
