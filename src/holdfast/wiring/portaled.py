"""Stores whose methods block until they have a result; they run through a ``Portal``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Generator
from contextlib import suppress
from typing import Any

from holdfast.values.errors import ConfigError
from holdfast.wiring.owned_ledger import OwnedLedger
from holdfast.wiring.portal import Portal


class Portaled:
    """An object whose coroutine methods are called without ``await``.

    Its methods block until they have a result, and its streams are plain generators. Objects with
    coroutine methods that it returns are wrapped in the same way. ::

        history = Portaled(state.history, portal)
        history.get_messages("planner", session_id="s1")
    """

    def __init__(self, target: Any, portal: Portal) -> None:
        self._target = target
        self._portal = portal

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"

    def __dir__(self) -> list[str]:
        theirs = {name for name in dir(self._target) if not name.startswith("_")}
        return sorted({*super().__dir__(), *theirs} - {"aclose"})

    def __getattr__(self, name: str) -> Any:
        # An attribute of a State checks the loop that it is read on, so it is read there.
        async def on_the_loop() -> Any:
            return getattr(self._target, name)

        found = self._portal.run(on_the_loop())
        if not callable(found):
            return self._wrap(found)

        @functools.wraps(found)
        def method(*args: Any, **named: Any) -> Any:
            async def on_the_loop() -> Any:
                answer = found(*args, **named)
                return await answer if inspect.isawaitable(answer) else answer

            return self._wrap(self._portal.run(on_the_loop()))

        return method

    def _wrap(self, answer: Any) -> Any:
        """Return a result as it is, or wrapped if it must be used on the state's loop."""
        if isinstance(answer, AsyncIterator):
            return _iterate(answer, self._portal)
        # The ledger of an owner finds its methods by name, so its class has none.
        if isinstance(answer, OwnedLedger) or is_store(type(answer)):
            return Portaled(answer, self._portal)
        return answer


def is_store(kind: Any) -> bool:
    """Return whether this is a class of Holdfast with public coroutine methods, as a store is.

    >>> is_store(str)
    False
    """
    return str(kind.__module__).startswith("holdfast") and any(
        inspect.iscoroutinefunction(getattr(kind, name, None))
        for name in dir(kind)
        if not name.startswith("_")
    )


def _iterate(items: AsyncIterator[Any], portal: Portal) -> Generator[Any, None, None]:
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
        while (found := portal.run(step()))[0]:
            yield found[1]
    finally:
        # The portal may be closed, or the generator collected on the state's own loop.
        with suppress(ConfigError):
            portal.run(close())
