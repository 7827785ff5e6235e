"""``holdfast.open()``: opens a ``State`` from settings and URLs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

from holdfast.spi.embedding import Embedder
from holdfast.spi.key_provider import KeyProvider
from holdfast.telemetry.options import Telemetry
from holdfast.values.checks import check_id
from holdfast.values.clock import Clock
from holdfast.values.errors import ConfigError, MissingExtraError, UnknownSchemeError
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import (
    BLOB_SCHEMES,
    INMEMORY,
    OBJECTS,
    PLUGINS,
    REDIS,
    TABLES,
    EngineSpec,
    check_graph,
    engine_of_settings,
    engine_of_url,
    load,
    location,
    missing_extras,
)
from holdfast.wiring.masking import shown_scheme
from holdfast.wiring.notices import notice
from holdfast.wiring.request import OpenRequest, check_embedder, with_embedder, with_limit
from holdfast.wiring.sealing import check_provider, check_sealable, provider_named
from holdfast.wiring.session_moves import move_sessions
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State
from holdfast.wiring.telemetry import telemetry_of, tracing_of

_NOT_YET = (
    "holdfast.open() is not a State yet: `async with holdfast.open(...) as state:`, or "
    "`state = await holdfast.open(...)`; without an event loop use holdfast.blocking.open()"
)


class Opening:
    """A ``State`` about to open: ``async with`` it, or ``await`` it and close it yourself.

    ::

        state = await holdfast.open("memory:")
        await state.aclose()
    """

    def __init__(self, spec: EngineSpec | None, request: OpenRequest, tenant: str) -> None:
        self._spec = spec
        self._request = request
        self._tenant = tenant
        self._state: State | None = None

    def __await__(self) -> Generator[Any, None, State]:
        return self._connect().__await__()

    async def __aenter__(self) -> State:
        self._state = await self._connect()
        return self._state

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._state is not None:
            await self._state.aclose()

    if not TYPE_CHECKING:  # hidden, so that a type checker reports `with` without `async`

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"no attribute {name!r}: {_NOT_YET}", name=name, obj=self)

        def __enter__(self) -> NoReturn:
            raise ConfigError(_NOT_YET)

        def __exit__(self, *_error: object) -> None:
            """Never called; ``with`` requires it to exist before it calls ``__enter__``."""

    async def _connect(self) -> State:
        if self._spec is None:
            notice(
                "no storage is configured: state is kept in this process and ends with it. "
                "To store it, pass a folder, as in open('./.holdfast'), or set HOLDFAST_DIR or "
                "DATABASE_URL. open('memory:') keeps it in this process without this warning"
            )
        specs = [self._spec or INMEMORY, *self._beside()]
        try:
            made = await with_embedder(self._request)
        except MissingExtraError as error:
            raise missing_extras(specs, beside=error) or error from None
        if missing := missing_extras(specs):
            raise missing
        request = with_limit(made)
        connections = await load(self._spec or INMEMORY).connect(request)
        connections.limits = request.settings.limits
        connections.receipt_key = request.settings.receipt_key
        try:
            if request.seal is not None:
                self._seal(connections, request)
            if request.graph != TABLES:
                await load(PLUGINS).put_graph_beside(connections, request)
            for beside in self._beside():
                await load(beside).put_beside(connections, request)
            await move_sessions(connections)
            connections.use_tracing(tracing_of(request.telemetry))
            if made.embedder is not self._request.embedder:
                close = getattr(made.embedder, "aclose", None)
                connections.on_close += [close] if close else []
            if connections.embedding is not None and request.background:
                connections.on_close.append(connections.embedding.stop)
                connections.embedding.start(self._tenant)
            return State(connections, self._tenant)
        except BaseException:
            await connections.close()
            raise

    def _seal(self, connections: Connections, request: OpenRequest) -> None:
        has_keys, embeds = connections.data_keys is not None, request.embedder is not None
        check_sealable(request.settings, has_keys=has_keys, embeds=embeds)
        plain_vectors = request.settings.seal_vectors == "plain"
        connections.use_provider(request.seal, plain_vectors=plain_vectors)

    def _beside(self) -> Iterator[EngineSpec]:
        if self._request.redis:
            yield REDIS
        if self._request.blobs:
            yield OBJECTS


class OpenOptions(TypedDict, total=False):
    """The options of ``open`` except the URL, for functions that pass them on."""

    redis: str | None
    blobs: str | None
    graph: str | None
    tenant: str | None
    embedder: Embedder | str | None
    settings: Settings | None
    clock: Clock | None
    background: bool | None
    seal: KeyProvider | str | None
    telemetry: Telemetry | None


def open(  # noqa: A001 - holdfast.open is the front door's name
    url: str | os.PathLike[str] | None = None,
    *,
    redis: str | None = None,
    blobs: str | None = None,
    graph: str | None = None,
    tenant: str | None = None,
    embedder: Embedder | str | None = None,
    settings: Settings | None = None,
    clock: Clock | None = None,
    background: bool | None = None,
    seal: KeyProvider | str | None = None,
    telemetry: Telemetry | None = None,
) -> Opening:
    """Open a ``State`` from these arguments, or else from the environment.

    ``url`` is ``memory:`` (in this process, not persisted), a folder (embedded Postgres) or the
    URL of a server. ``redis`` is the URL of a Redis or Valkey for the hot path. ``blobs`` is the
    URL of an object store for large values. ``graph="age"`` keeps the graph in Apache AGE. Without
    a URL, ``STORAGE_TYPE``, ``DATABASE_URL`` or ``HOLDFAST_DIR``, the state is ``memory:``, and a
    warning is logged. An unknown value raises an error that lists the known ones. With Postgres and
    ``redis``, this process copies events from Redis to Postgres in the background, unless
    ``background=False``. ``embedder`` is your own object, or a name as in ``HOLDFAST_EMBEDDER``.
    ``clock`` replaces the time of the in-memory engine, for tests. ``seal`` encrypts content: a
    name as in ``HOLDFAST_SEAL``, or your own key provider. ``telemetry`` traces every call with
    OpenTelemetry, as ``HOLDFAST_OTEL=1`` does.

    ::

        async with holdfast.open("memory:") as state:
            await state.short_term.set_state("s1", {"step": 1})
    """
    chosen = Settings.from_environment() if settings is None else settings
    if isinstance(embedder, str):
        chosen, embedder = dataclasses.replace(chosen, embedder=embedder), None
    check_embedder(embedder)
    if isinstance(seal, str):
        chosen, seal = dataclasses.replace(chosen, seal=seal), None
    check_provider(seal)
    address = None if url is None else location(url)
    redis, blobs = redis or chosen.redis_url, blobs or chosen.blob_url
    if redis and engine_of_url(redis) is not REDIS:
        raise UnknownSchemeError(
            shown_scheme(redis.partition(":")[0]),
            known=("redis:", "rediss:"),
            setting="redis URL scheme",
        )
    if blobs and blobs.partition(":")[0] not in BLOB_SCHEMES:
        raise UnknownSchemeError(
            shown_scheme(blobs.partition(":")[0]), known=BLOB_SCHEMES, setting="blob URL scheme"
        )
    spec = engine_of_settings(chosen) if address is None else engine_of_url(address)
    graph = graph or chosen.graph
    check_graph(graph, spec)
    return Opening(
        spec,
        OpenRequest(
            url=address or chosen.database_url,
            redis=redis,
            blobs=blobs,
            graph=graph,
            settings=chosen,
            embedder=embedder,
            clock=clock,
            background=chosen.background if background is None else background,
            seal=provider_named(chosen) if seal is None else seal,
            telemetry=telemetry_of(telemetry, chosen),
        ),
        check_id("tenant", chosen.tenant if tenant is None else tenant),
    )
