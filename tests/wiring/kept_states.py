"""States of tests: those on Postgres stay open from test to test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import holdfast
from holdfast import Settings, State
from holdfast.values.ids import new_ref
from tests.engines.kept_engines import put_back, take

SETTINGS = Settings(max_connections=6)


@asynccontextmanager
async def fresh_state(
    url: str, *, redis: str = "", settings: Settings = SETTINGS
) -> AsyncIterator[State]:
    """A state in a tenant of its own: a view of one that stays open, or one that is opened now.

    A state in the process is cheap to open, and one with Redis copies events until it is closed.
    """
    if redis or url == "memory:":
        async with holdfast.open(url, redis=redis, tenant=new_ref(), settings=settings) as opened:
            yield opened
        return

    async def connect() -> State:
        return await holdfast.open(url, settings=settings)

    kept = await take((url, settings), connect, State)
    try:
        yield kept.for_tenant(new_ref())
    finally:
        await put_back((url, settings), kept)
