"""A process that hangs within a write to a session in two stores, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import holdfast
from holdfast import State
from tests.adapters.google_adk.calls import create, event_with, get, service_on

STEPS = ("first", "log", "user", "app", "last")
"""The steps of a write: the state of the session, the event, the other states, the end."""


class DiedError(Exception):
    """Ends a call where the process would die."""


async def _die() -> None:
    raise DiedError


@contextmanager
def dying(state: State, step: str, die: Callable[[], Awaitable[None]] = _die) -> Iterator[None]:
    """Let a write to a session die before one of its steps."""
    episodes, states = type(state.episodes), type(state.short_term)
    append, update = episodes.append, states.update_state
    written = iter(one for one in STEPS if one != "log")

    async def dying_append(*arguments: Any, **options: Any) -> Any:
        if step == "log" and not options.get("patches"):
            await die()
        return await append(*arguments, **options)

    async def dying_update(*arguments: Any, **options: Any) -> Any:
        if next(written, "") == step:
            await die()
        return await update(*arguments, **options)

    episodes.append, states.update_state = dying_append, dying_update  # type: ignore[method-assign]
    try:
        yield
    finally:
        episodes.append, states.update_state = append, update  # type: ignore[method-assign]


async def _hang_in(step: str) -> None:
    print(f"in {step}", flush=True)  # noqa: T201 - the parent waits for it
    await asyncio.Event().wait()


async def main(url: str, redis: str, tenant: str, step: str) -> None:
    """Write an event, and hang in the next one."""
    delta = {"n": 1, "user:unit": "ft", "app:tide": 2}
    async with holdfast.open(url, redis=redis, tenant=tenant) as state:
        await service_on(state).append_event(await create(state), event_with("before"))
        with dying(state, step, lambda: _hang_in(step)):
            await service_on(state).append_event(await get(state), event_with("a", delta=delta))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
