"""What tests of the hybrid memory do again and again."""

from __future__ import annotations

from typing import Any

import redis.asyncio

from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.hybrid import HybridHarness, valkey
from tests.engines.postgres_database import as_keeper

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")


def event(note: str, *, session: str = "s1", agent: AgentId = ANA, **more: Any) -> Event:
    """An event that says something."""
    return Event(agent, session, more.pop("type", "observation"), {"note": note}, **more)


def notes(events: list[Event]) -> list[str]:
    """What events say."""
    return [one.payload["note"] for one in events]


def bare() -> Any:
    """The driver's own client."""
    return redis.asyncio.Redis(port=valkey().port)


async def stored(hybrid: HybridHarness, session: str = "s1") -> list[Event]:
    """What Postgres alone has of a session, in order, whoever wrote it."""
    tenant = hybrid._prefix + "default"
    tail = await hybrid.log(tenant).durable.tail(session, 100_000)
    return [one.to_event() for one in tail]


async def flush(hybrid: HybridHarness) -> None:
    """Have everything flushed."""
    assert await hybrid.consolidator.drain(limit_seconds=60)


async def gaps(hybrid: HybridHarness) -> int:
    """How many gaps are recorded, open ones included, for this test's tenants."""
    async with as_keeper(hybrid.engine) as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM holdfast.session_gaps WHERE starts_with(tenant, $1)",
            hybrid._prefix,
        )
    return count
