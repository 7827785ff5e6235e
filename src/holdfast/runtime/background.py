"""Jobs beside a worker's own loop: an error in one is logged, and the job goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.worker")
AFTER_ERROR_SECONDS = 1.0
"""How long a job rests after an error, at least."""


class Runs(Protocol):
    """What runs until it is told to stop: a worker, a service."""

    def stop(self) -> None:
        """Drain."""
        ...

    async def run(self) -> None:
        """Run until then."""
        ...


class BackgroundJob:
    """Calls a function again and again, until it is closed.

    ::

        job = BackgroundJob("recovery", recover, pause_seconds=5)
        ...
        job.check()
        await job.aclose()
    """

    def __init__(
        self, name: str, function: Callable[[], Awaitable[object]], *, pause_seconds: float
    ) -> None:
        self.name = name
        self._function = function
        self._pause_seconds = pause_seconds
        self._task = asyncio.create_task(self._run(), name=f"holdfast {name}")

    def check(self) -> None:
        """Raise if it has ended before it was closed, whatever ended it."""
        if self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            raise RuntimeError(f"the job {self.name} of the worker has ended: {error}") from error

    async def aclose(self) -> None:
        """End it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            pause_seconds = max(self._pause_seconds, AFTER_ERROR_SECONDS)
            try:
                await self._function()
                pause_seconds = self._pause_seconds
            except HoldfastError as error:
                _log.warning("%s will try again: %s", self.name, error)
            except Exception as error:  # noqa: BLE001 - no error may end the job
                _log.error("%s will try again: %s", self.name, error, exc_info=True)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # Something inside of it was cancelled, and nobody meant the job.
                _log.exception("%s was cancelled from inside and will try again", self.name)
            await asyncio.sleep(pause_seconds)
