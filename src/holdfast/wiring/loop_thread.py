"""An event loop in a separate thread, for callers that have none."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class _Threads(ThreadPoolExecutor):
    """A thread pool that runs work in the caller's thread if no thread can be started.

    No thread can be started while the interpreter shuts down.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        try:
            return super().submit(fn, *args, **named)
        except RuntimeError:
            done: Future[T] = Future()
            try:
                done.set_result(fn(*args, **named))
            except Exception as error:  # noqa: BLE001 - it is raised where the answer is read
                done.set_exception(error)
            return done


class LoopThread:
    """An event loop in a daemon thread.

    ::

        thread = LoopThread("holdfast.portal")
        state = thread.wait_for(connect())
        thread.close()
    """

    def __init__(self, name: str) -> None:
        self._process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(_Threads(thread_name_prefix=name))
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self.loop.is_closed()

    @property
    def forked(self) -> bool:
        """Whether this is a forked child process: it does not have the thread."""
        return os.getpid() != self._process

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for it in this thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """Stop the loop and end the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
