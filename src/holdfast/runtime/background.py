"""Background jobs of a worker: an error in a job is logged, and the job is retried."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.worker")
AFTER_ERROR_SECONDS = 1.0
"""Minimum pause of a job after an error."""


class Runs(Protocol):
    """Something that runs until ``stop`` is called: a worker or a service."""

    def stop(self) -> None:
        """Start to drain."""
        ...

    async def run(self) -> None:
        """Run until ``stop`` is called, then drain."""
        ...


class BackgroundJob:
    """Calls a function repeatedly until the job is closed.

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
        """Raise ``RuntimeError`` if the job ended, for whatever reason, before it was closed."""
        if self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            raise RuntimeError(f"the job {self.name} of the worker has ended: {error}") from error

    async def aclose(self) -> None:
        """Cancel the job and wait until it has ended."""
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
                # Something inside the function was cancelled, not the job.
                _log.exception("%s was cancelled from inside and will try again", self.name)
            await asyncio.sleep(pause_seconds)
