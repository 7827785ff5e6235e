"""What tests of the eviction of working states do again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.spi.hybrid.state_snapshots import Eviction
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import bare


def empty_redis() -> None:
    """As ``FLUSHALL``, or a restart without AOF."""
    assert valkey().ask("FLUSHALL") == "+OK"


async def hot_sessions() -> set[str]:
    """Whose states are in Redis."""
    async with bare() as client:
        keys = [key.decode() for key in await client.keys("*:st:*")]
    return {key.rpartition(":")[2] for key in keys if ":bad:" not in key}


async def rest(hybrid: HybridHarness) -> int:
    """Let everything rest for a second, and consolidate; how many states were evicted."""
    before = hybrid.consolidator.metrics.evicted
    await hybrid.elapse(1)
    await hybrid.consolidator.run_once()
    return hybrid.consolidator.metrics.evicted - before


async def begun(hybrid: HybridHarness, session: str = "s1") -> tuple[str, int, Eviction]:
    """The first step of an eviction, by hand."""
    await hybrid.elapse(1)
    tenant = hybrid._prefix + "default"
    shard = hybrid.short_term(tenant)._hot.shard_of(session)
    eviction = await hybrid.clean.begin_eviction(tenant, shard, [session], unused_seconds=0.5)
    return tenant, shard, eviction


def another(hybrid: HybridHarness) -> Any:
    """The states as another process has them, which remembers nothing."""
    mine = (hybrid.writer, dict(hybrid.logs), dict(hybrid.kept))
    hybrid.die()
    states = hybrid.store("short_term")
    hybrid.writer, hybrid.logs, hybrid.kept = mine
    return states


@dataclass
class Paused:
    """A call that has its answer and goes no further until it may."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0


@contextmanager
def paused(store: Any, name: str) -> Iterator[Paused]:
    """Let the first call of a method pause once it has its answer."""
    method, pause = getattr(store, name), Paused()

    async def call(*given: Any, **named: Any) -> Any:
        pause.calls += 1
        answer = await method(*given, **named)
        if pause.calls == 1:
            pause.answered.set()
            await pause.go_on.wait()
        return answer

    setattr(store, name, call)
    try:
        yield pause
    finally:
        setattr(store, name, method)
