"""Engines that stay connected from test to test.

To connect, to check the schema and to prepare statements costs more than most tests do. An engine
serves any tenant, and each test has tenants of its own, so the next test can go on with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar


class Engine(Protocol):
    """What can be closed."""

    async def aclose(self) -> None: ...


E = TypeVar("E", bound=Engine)

_kept: dict[asyncio.AbstractEventLoop, dict[object, list[Engine]]] = {}
"""The engines that no test uses now, by event loop and key."""


@asynccontextmanager
async def kept_engines() -> AsyncIterator[None]:
    """Keep the engines that tests on this event loop put back, and close them at the end."""
    loop = asyncio.get_running_loop()
    _kept[loop] = {}
    try:
        yield
    finally:
        # All at once: a test process that takes long to end is killed, and its servers stay.
        kept = [engine for engines in _kept.pop(loop).values() for engine in engines]
        await asyncio.gather(*(engine.aclose() for engine in kept))


async def take(key: object, connect: Callable[[], Awaitable[E]], kind: type[E]) -> E:
    """An engine that was put back under this key, or else a new one."""
    kept = _kept.get(asyncio.get_running_loop(), {}).get(key)
    if not kept:
        return await connect()
    engine = kept.pop()
    assert isinstance(engine, kind)
    return engine


async def put_back(key: object, engine: Engine) -> None:
    """Keep an engine for the next test; close it where no engines are kept."""
    kept = _kept.get(asyncio.get_running_loop())
    if kept is None:
        await engine.aclose()
    else:
        kept.setdefault(key, []).append(engine)
