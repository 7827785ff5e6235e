"""Redis or Valkey, together with a durable engine or alone."""

from __future__ import annotations

import dataclasses

from holdfast.contracts.channel import Channel
from holdfast.contracts.event_log import Events
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.contracts.wakes import Wakes
from holdfast.engines.redis.channel import RedisChannels
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.episodes import RedisEvents
from holdfast.engines.redis.erasure import RedisNames
from holdfast.engines.redis.hot_queue import RedisHotQueue
from holdfast.engines.redis.round_trips import watch_round_trips
from holdfast.engines.redis.scrub import Scrub
from holdfast.engines.redis.short_term import RedisStates
from holdfast.engines.redis.transcripts import RedisTranscripts
from holdfast.engines.redis.wake import RedisWake
from holdfast.spi.erasure import ErasureScope
from holdfast.wiring.connections import Connections
from holdfast.wiring.hybrid import connected_hybrid, level_of, put_hybrid
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.stores import Stores

ALONE = ("history", "short_term", "channel")
"""The attributes that Redis serves without a durable engine."""

BESIDE = ("short_term", "channel")
"""The attributes that Redis serves together with a durable engine."""


async def connect(request: OpenRequest) -> Connections:
    """Connect to Redis alone: transcripts with a TTL, working state and channels."""
    engine = await opened(request, request.url)

    def stores(tenant: str, _graph: KnowledgeGraph | None) -> Stores:
        ttl = request.settings.history_ttl_seconds
        history = History(RedisTranscripts(engine, tenant=tenant, ttl_seconds=ttl))
        log = Events(RedisEvents(engine, tenant=tenant, ttl_seconds=ttl))
        wakes = Wakes(RedisWake(engine, tenant=tenant))
        hot = _hot(engine, tenant, request, Stores())
        return dataclasses.replace(hot, history=history, memory_log=log, wakes=wakes)

    return Connections(stores=stores, connected=[connected_engine(engine).serving(*ALONE)])


async def put_beside(found: Connections, request: OpenRequest) -> None:
    """Make Redis serve some stores of an opened state; with a durable engine, as a hybrid."""
    engine = await opened(request, request.redis)
    hybrid = found.durable is not None
    found.add(
        connected_engine(engine).serving(*(("channel",) if hybrid else BESIDE)),
        lambda tenant, stores: _hot(engine, tenant, request, stores, with_states=not hybrid),
    )
    found.finders["channels"] = lambda tenant: RedisNames(
        engine, "chan", ErasureScope.has_id, tenant=tenant
    )
    if hybrid:
        await put_hybrid(found, request, engine)
    else:
        found.finders["states"] = lambda tenant: RedisNames(
            engine, "st", ErasureScope.has_session, tenant=tenant
        )


async def opened(request: OpenRequest, url: str) -> Redis:
    """Return a connected engine."""
    settings = request.settings
    return await Redis.open(url, shards=settings.redis_shards, allow_unsafe=settings.allow_unsafe)


def connected_hybrid_of(request: OpenRequest, engine: Redis) -> ConnectedEngine:
    """Return the hybrid of this engine and a durable one.

    ::

        connected = connected_hybrid_of(request, engine)
    """
    level = level_of(request.settings, engine)
    found = connected_hybrid(engine, RedisHotQueue(engine), level, engine.aclose)
    return dataclasses.replace(
        found, pool=engine.pool_use, watch=lambda call: watch_round_trips(engine, call)
    )


def connected_engine(engine: Redis) -> ConnectedEngine:
    """Return the engine as a ``State`` uses it."""
    found = engine.capabilities
    return ConnectedEngine(
        engine.name,
        BESIDE,
        found.durability,
        engine.ping,
        engine.aclose,
        pool=engine.pool_use,
        watch=lambda call: watch_round_trips(engine, call),
        version=found.describe(),
        capabilities=(f"{engine.shards} shards",),
        warnings=found.warnings,
    )


async def scrub(request: OpenRequest) -> int:
    """Rewrite the files of Redis, without the bytes of deleted keys."""
    engine = await opened(request, request.redis)
    try:
        return await Scrub(engine).rewrite()
    finally:
        await engine.aclose()


def _hot(
    engine: Redis, tenant: str, request: OpenRequest, stores: Stores, *, with_states: bool = True
) -> Stores:
    settings = request.settings

    def channel(name: str) -> Channel:
        retention = settings.channel_retention_seconds
        storage = RedisChannels(engine, tenant=tenant)
        return Channel(storage, name=name, retention_seconds=retention)

    if not with_states:
        return dataclasses.replace(stores, channel=channel)
    states = RedisStates(engine, tenant=tenant)
    short_term = States(
        states, ttl_seconds=settings.state_ttl_seconds, kept_versions=settings.state_versions
    )
    return dataclasses.replace(stores, short_term=short_term, channel=channel)
