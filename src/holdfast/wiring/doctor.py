"""Checks every configured engine, each separately."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

from holdfast.sealing.data_keys import kek_counts
from holdfast.values.errors import HoldfastError
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import (
    EMBEDDED,
    OBJECTS,
    PLUGINS,
    POSTGRES,
    REDIS,
    TABLES,
    EngineSpec,
    check_graph,
    engine_of_settings,
    load,
    where_of,
)
from holdfast.wiring.health import EngineHealth
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.sealing import provider_named
from holdfast.wiring.session_moves import unassigned_contexts
from holdfast.wiring.settings import Settings


async def examine(settings: Settings | None = None) -> AsyncIterator[EngineHealth]:
    """Connect to every configured engine and yield the health of each.

    An engine that cannot be reached is ``down``, with the reason; the others are still checked. ::

        async for engine in examine():
            print(engine.engine, engine.status)
    """
    chosen = Settings.from_environment() if settings is None else settings
    request = OpenRequest(
        url=chosen.database_url,
        redis=chosen.redis_url,
        blobs=chosen.blob_url,
        settings=chosen,
        graph=chosen.graph,
    )
    main = engine_of_settings(chosen) or EMBEDDED
    yield await _checked(main.name, lambda: _main(main, request))
    if request.graph != TABLES:
        yield await _checked(request.graph, lambda: _graph(main, request))
    if request.redis:
        redis = await _checked(REDIS.name, lambda: _beside(REDIS, request))
        yield redis
        if main in (POSTGRES, EMBEDDED) and redis.status != "down":
            yield await _checked("hybrid", lambda: _hybrid(request))
    if request.blobs:
        yield await _checked(OBJECTS.name, lambda: _beside(OBJECTS, request))


def problems(found: Iterable[EngineHealth]) -> Iterator[str]:
    """Yield the problems to fix before a deployment starts, each with its engine and its fix.

    >>> list(problems([EngineHealth("inmemory", "ok", serves=(), durability="none")]))
    ['inmemory: durability none: use one that is durable']
    """
    for one in found:
        if one.status != "ok":
            yield f"{one.engine}: {one.status}: {one.detail}"
        if one.durability.startswith("none"):
            yield f"{one.engine}: durability {one.durability}: use one that is durable"
        yield from (f"{one.engine}: {warning}" for warning in one.warnings)


async def _graph(main: EngineSpec, request: OpenRequest) -> EngineHealth:
    check_graph(request.graph, main)
    wiring = load(PLUGINS)
    engine = await wiring.opened(request.graph, request)
    try:
        connected: ConnectedEngine = wiring.connected_engine(engine, "graph")
        return await connected.probe()
    finally:
        await engine.aclose()


async def _hybrid(request: OpenRequest) -> EngineHealth:
    """Return the hybrid's acknowledgement level, and how far Postgres is behind Redis."""
    wiring = load(REDIS)
    engine = await wiring.opened(request, request.redis)
    try:
        connected: ConnectedEngine = wiring.connected_hybrid_of(request, engine)
        return await connected.probe()
    finally:
        await engine.aclose()


async def _checked(name: str, look: Callable[[], Awaitable[EngineHealth]]) -> EngineHealth:
    start = time.perf_counter()
    try:
        return await look()
    except HoldfastError as error:
        waited = time.perf_counter() - start
        return EngineHealth(
            name,
            "down",
            serves=(),
            durability="",
            latency_seconds=waited,
            detail=str(error),
        )


async def _main(spec: EngineSpec, request: OpenRequest) -> EngineHealth:
    found: Connections = await load(spec).connect(request)
    try:
        health = (await found.probe()).engines[0]
        return dataclasses.replace(
            health,
            sealed=await _sealed(found, request.settings),
            where=where_of(request.settings),
            warnings=(*health.warnings, *await unassigned_contexts(found)),
        )
    finally:
        await found.close()


async def _sealed(found: Connections, settings: Settings) -> str:
    """Return how the tenant's content is encrypted, and with which keys; empty if it is not."""
    if found.data_keys is None:
        return ""
    counts = await kek_counts(found.data_keys(settings.tenant))
    provider = provider_named(settings)
    wrapped = ", ".join(f"{count} data keys by {kek!r}" for kek, count in sorted(counts.items()))
    if provider is None:
        return f"no: but {wrapped}; set HOLDFAST_SEAL to read them" if counts else ""
    return f"by {provider.name}, new data keys by {provider.current!r}; {wrapped or 'none yet'}"


async def _beside(spec: EngineSpec, request: OpenRequest) -> EngineHealth:
    wiring = load(spec)
    if spec is REDIS:
        engine = await wiring.opened(request, request.redis)
    else:
        engine = await wiring.opened(request)
    connected: ConnectedEngine = wiring.connected_engine(engine)
    try:
        health = await connected.probe()
        if spec is REDIS:
            return health
        return dataclasses.replace(
            health, warnings=(*health.warnings, *await wiring.warnings_of(engine))
        )
    finally:
        await connected.close()
