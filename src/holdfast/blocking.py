"""A ``State`` for code that does not await: scripts, notebooks, synchronous frameworks.

It has the same stores and methods. They run on an event loop in a separate thread, and each call
blocks until its result is there::

    import holdfast.blocking

    with holdfast.blocking.open("memory:") as state:
        ref = state.blobs.store(b"bytes")
        data = state.blobs.resolve(ref)
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Any, Self, Unpack

from holdfast.runtime.app import App
from holdfast.runtime.worker import Worker
from holdfast.runtime.worker_options import WorkerOptions
from holdfast.values.errors import ConfigError
from holdfast.wiring import front_door
from holdfast.wiring.blocking_stores import BlockingStores
from holdfast.wiring.portal import Portal
from holdfast.wiring.state import State

__all__ = [  # and open, but `import *` keeps Python's own
    "BlockingState",
    "BlockingWorker",
    "Portal",
]


class BlockingState(BlockingStores):
    """A ``State`` on a background event loop; close it, or use it as a context manager.

    Any thread may use it, also one whose own event loop is running, as in a notebook. A state that
    is still open is closed when the process exits. After a fork, the child process must open its
    own state.

    >>> with open("memory:") as state:
    ...     state.short_term.set_state("s1", {"step": 1})
    ...     state.short_term.get_state("s1")
    {'step': 1}
    """

    def __init__(self, state: State, portal: Portal) -> None:
        super().__init__(state, portal)
        self._state = state
        self._portal = portal

    def worker(self, app: App, **options: Unpack[WorkerOptions]) -> BlockingWorker:
        """Return a worker that runs the handlers of an app on this state.

        The options are those of ``holdfast.Worker``.

        >>> app = App("demo")
        >>> @app.handler(agent="echo")
        ... async def echo(task):
        ...     return task.message.text
        >>> with open("memory:") as state:
        ...     state.worker(app).run_until_idle()
        0
        """

        async def make() -> Worker:
            return Worker(app, self._state, **options)

        return BlockingWorker(self._portal.run(make()), self._portal)

    def close(self) -> None:
        """Close the state and end its thread.

        A second call does nothing, nor does a call on a ``for_owner`` view or after a fork.

        >>> state = open("memory:")
        >>> state.close()
        """
        if self._state is self._portal.state:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _wrap(self, answer: Any) -> Any:
        if isinstance(answer, State):
            return type(self)(answer, self._portal)
        return super()._wrap(answer)


class BlockingWorker:
    """A ``Worker`` on the event loop of a blocking state; ``BlockingState.worker`` returns it.

    As a context manager it works in the background and drains at the end of the block. ::

        with state.worker(app):
            task = state.tasks.submit("writer", ChatMessage.user("Tides of Brest?"))
            for event in state.tasks.follow(task.id):
                print(event)
    """

    def __init__(self, worker: Worker, portal: Portal) -> None:
        self._worker = worker
        self._portal = portal
        self._started = False
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The worker's name, as the timelines of tasks show it."""
        return self._worker.name

    @property
    def running(self) -> int:
        """How many handlers run now."""
        return self._worker.running

    def run(self) -> None:
        """Work until ``stop`` is called in another thread or Ctrl-C is pressed, then drain.

        A second Ctrl-C stops it at once: other workers continue its tasks after their leases
        expire. ::

            state.worker(app, concurrency=20).run()
        """
        try:
            self._portal.run(self._work())
        except KeyboardInterrupt:
            self.stop()
            self._finish()

    def run_until_idle(self) -> int:
        """Run tasks until none is ready to run. Returns how many times a handler was called.

        ::

            state.worker(app).run_until_idle()
        """
        return self._portal.run(self._worker.run_until_idle())

    def stop(self) -> None:
        """Stop claiming tasks, wait ``grace_seconds`` for handlers, release unfinished tasks.

        Any thread may call it; it does not wait. ::

            worker.stop()
        """
        self._portal.state.loop.call_soon_threadsafe(self._worker.stop)

    def __enter__(self) -> Self:
        if self._started:
            raise ConfigError("this worker has been started: make another with state.worker(app)")
        self._started = True
        self._portal.start(self._work())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._finish()

    async def _work(self) -> None:
        self._task = asyncio.current_task()
        await self._worker.run()

    async def _drained(self) -> None:
        # An interrupt may come before the work has begun.
        if self._task is not None:
            await self._task

    def _finish(self) -> None:
        try:
            self._portal.run(self._drained())
        except KeyboardInterrupt:
            if self._task is not None:
                self._portal.state.loop.call_soon_threadsafe(self._task.cancel)
            raise


def open(  # noqa: A001 - as holdfast.open
    url: str | os.PathLike[str] | None = None, **options: Unpack[front_door.OpenOptions]
) -> BlockingState:
    """Open a ``State`` on a separate event loop; the arguments are those of ``holdfast.open``.

    >>> with open("memory:") as state:
    ...     state.tenant
    'default'
    """
    portal = Portal.open(url, **options)
    return BlockingState(portal.state, portal)
