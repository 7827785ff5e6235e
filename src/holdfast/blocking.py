"""A ``State`` for code without an event loop: scripts, notebooks, synchronous frameworks.

A portal, not a second API: the same stores and methods, run on an event loop in a thread of its
own, each call waiting for its answer::

    import holdfast.blocking

    with holdfast.blocking.open("memory:") as state:
        ref = state.blobs.store(b"bytes")
        data = state.blobs.resolve(ref)
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from holdfast.contracts.working_memory import AgentFacts, WorkingMemory
from holdfast.values.errors import ConfigError
from holdfast.wiring import front_door
from holdfast.wiring.loop_thread import LoopThread
from holdfast.wiring.state import State

T = TypeVar("T")
_STORES = (
    "holdfast.engines.",
    "holdfast.contracts.",
    "holdfast.memory.",
    "holdfast.wiring.owned_",
    "holdfast.wiring.ops",
)
"""Where the classes of stores are, and of views on them."""

__all__ = ["BlockingState"]  # and open, but `import *` keeps Python's own


class _Portal(LoopThread):
    """An event loop in a daemon thread, and the way into it."""

    def __init__(self) -> None:
        super().__init__("holdfast.blocking")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._check_caller()
        except ConfigError:
            work.close()
            raise
        return self.wait_for(work)

    def call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        async def on_the_loop() -> Any:
            answer = function(*args, **named)
            return await answer if inspect.isawaitable(answer) else answer

        return self.wrap(self.run(on_the_loop()))

    def get(self, owner: Any, name: str) -> Any:
        # An attribute of a State checks the loop that it is read on, so it is read there.
        async def on_the_loop() -> Any:
            return getattr(owner, name)

        return self.run(on_the_loop())

    def wrap(self, answer: Any) -> Any:
        """What may cross to the caller's thread as it is, and what needs the portal to be used."""
        if isinstance(answer, AsyncIterator):
            return self._iterate(answer)
        if isinstance(answer, State):
            return BlockingState(answer, self, owns=False)
        if isinstance(answer, (AgentFacts, WorkingMemory)):
            return _Portaled(answer, self)
        if type(answer).__module__.startswith(_STORES):
            return _Portaled(answer, self)
        return answer

    def _iterate(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        async def step() -> tuple[bool, Any]:
            # StopAsyncIteration cannot be raised out of a coroutine that is awaited elsewhere.
            try:
                return True, await anext(items)
            except StopAsyncIteration:
                return False, None

        async def close() -> None:
            if inspect.isasyncgen(items):
                await items.aclose()

        try:
            while (found := self.run(step()))[0]:
                yield found[1]
        finally:
            if not self.closed and not self.forked:
                self.run(close())

    def _check_caller(self) -> None:
        self.check_process()
        if self.closed:
            raise ConfigError("this State is closed: open another with holdfast.blocking.open()")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise ConfigError(
            "holdfast.blocking would block the event loop that is running here: "
            "use `async with holdfast.open(...)`"
        )


class _Portaled:
    """A store whose methods wait for their answer."""

    def __init__(self, target: Any, portal: _Portal) -> None:
        self._target = target
        self._portal = portal

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"

    def __dir__(self) -> list[str]:
        theirs = {name for name in dir(self._target) if not name.startswith("_")}
        return sorted({*super().__dir__(), *theirs} - {"aclose"})

    def __getattr__(self, name: str) -> Any:
        found = self._portal.get(self._target, name)
        if not callable(found):
            return self._portal.wrap(found)

        @functools.wraps(found)
        def method(*args: Any, **named: Any) -> Any:
            return self._portal.call(found, args, named)

        return method


class BlockingState(_Portaled):
    """A ``State`` on a background event loop; close it, or use it as a context manager.

    One that is still open when the process ends is closed then. After a fork the child opens its
    own.

    >>> with open("memory:") as state:
    ...     state.short_term.set_state("s1", {"step": 1})
    ...     state.short_term.get_state("s1")
    {'step': 1}
    """

    def __init__(self, target: State, portal: _Portal, *, owns: bool = True) -> None:
        super().__init__(target, portal)
        self._owns = owns
        if owns:
            atexit.register(self.close)

    def close(self) -> None:
        """Close the state and end its thread; again, on a view or in a fork, does nothing.

        >>> state = open("memory:")
        >>> state.close()
        """
        if self._owns and not self._portal.closed and not self._portal.forked:
            self._portal.run(self._target.aclose())
            self._portal.close()
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


def open(  # noqa: A001 - as holdfast.open
    url: str | os.PathLike[str] | None = None, **options: Unpack[front_door.OpenOptions]
) -> BlockingState:
    """Open a ``State`` on an event loop of its own; takes what ``holdfast.open`` takes.

    >>> with open("memory:") as state:
    ...     state.tenant
    'default'
    """
    portal = _Portal()

    async def connect() -> State:
        return await front_door.open(url, **options)

    try:
        return BlockingState(portal.run(connect()), portal)
    except BaseException:
        portal.close()
        raise
