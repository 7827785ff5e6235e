"""Engines of other distributions, found by their entry points."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from holdfast.contracts.blobs import StoredBlobs
from holdfast.contracts.boards import Boards
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import Checkpoints
from holdfast.contracts.cypher_graph import CypherGraph
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.history import History
from holdfast.contracts.items import Items
from holdfast.contracts.keys import KeyStore
from holdfast.contracts.long_term import LongTerm
from holdfast.contracts.schedules import Schedules
from holdfast.contracts.short_term import States
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.contracts.tasks.work import Work
from holdfast.contracts.vectors import Vectors
from holdfast.erasure.graph_names import GraphNames, RelationshipNames
from holdfast.spi.engine import GROUP, Engine, EngineOptions, OpenEngine, TaskEngine
from holdfast.spi.graph import CypherStorage
from holdfast.values.errors import ConfigError, NotSupportedError
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import providers
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.stores import Stores


def _graph(storage: Any) -> KnowledgeGraph:
    return CypherGraph(storage) if isinstance(storage, CypherStorage) else KnowledgeGraph(storage)


def _channel(storage: Any, request: OpenRequest) -> Callable[[str], Channel]:
    retention = request.settings.channel_retention_seconds
    return lambda name: Channel(storage, name=name, retention_seconds=retention)


FRONTS: dict[str, Callable[[Any, OpenRequest], Any]] = {
    "blobs": lambda storage, request: StoredBlobs(
        storage, ttl_seconds=request.settings.blob_ttl_seconds
    ),
    "boards": lambda storage, _request: Boards(storage),
    "channel": _channel,
    "checkpoints": lambda storage, _request: Checkpoints(storage),
    "episodes": lambda storage, request: EpisodicMemory(
        storage,
        state_ttl_seconds=request.settings.state_ttl_seconds,
        state_versions=request.settings.state_versions,
    ),
    "graph": lambda storage, _request: _graph(storage),
    "history": lambda storage, _request: History(storage),
    "items": lambda storage, _request: Items(storage),
    "keys": lambda storage, _request: KeyStore(storage),
    "long_term": lambda storage, request: LongTerm(storage, embedder=request.embedder),
    "schedules": lambda storage, _request: Schedules(storage),
    "short_term": lambda storage, request: States(
        storage,
        ttl_seconds=request.settings.state_ttl_seconds,
        kept_versions=request.settings.state_versions,
    ),
    "tasks": lambda storage, _request: Ledger(storage),
    "vectors": lambda storage, request: Vectors(storage, embedder=request.embedder),
}
"""The stores that an engine may provide, and the contract class for each."""


@cache
def plugins() -> dict[str, EntryPoint]:
    """Return the entry points of installed engines by URL scheme.

    ::

        opens = plugins()["sqlite"].load()
    """
    return {point.name: point for point in entry_points(group=GROUP)}


async def connect(request: OpenRequest) -> Connections:
    """Open the engine that the scheme of the URL names."""
    engine = await opened(request.url.partition(":")[0], request)

    def stores(tenant: str, _graph: KnowledgeGraph | None) -> Stores:
        return Stores(
            **{
                contract: FRONTS[contract](engine.storage(contract, tenant), request)
                for contract in engine.contracts
            }
        )

    return Connections(
        stores=stores,
        connected=[connected_engine(engine)],
        work=Work(engine.work()) if isinstance(engine, TaskEngine) else None,
    )


async def put_graph_beside(found: Connections, request: OpenRequest) -> None:
    """Make the engine that ``request.graph`` names store the graph of an opened state."""
    engine = await opened(request.graph, request)
    if "graph" not in engine.contracts:
        await engine.aclose()
        raise NotSupportedError(engine.name, "graph", why=f"{providers('graph')}")
    found.use_graph(
        connected_engine(engine, "graph"), lambda tenant: _graph(engine.storage("graph", tenant))
    )
    found.finders["entities"] = lambda tenant: GraphNames(engine.storage("graph", tenant))
    found.finders["relationships"] = lambda tenant: RelationshipNames(
        engine.storage("graph", tenant)
    )


async def opened(scheme: str, request: OpenRequest) -> Engine:
    """Connect the engine of a scheme to the URL of the request."""
    settings, point = request.settings, plugins()[scheme]
    try:
        opens: OpenEngine = point.load()
    except ImportError as error:
        raise ConfigError(
            f"the engine {scheme!r} ({point.value}) cannot be imported: {error}: "
            "install what it needs, or remove the package"
        ) from error
    options = EngineOptions(settings.command_timeout_seconds, settings.allow_unsafe)
    engine = await opens(request.url, options)
    unknown = engine.contracts - FRONTS.keys()
    if unknown or not engine.contracts:
        await engine.aclose()
        known = ", ".join(sorted(FRONTS))
        raise ConfigError(
            f"the engine {engine.name!r} must store some of {known}, "
            f"but declares {', '.join(sorted(unknown)) or 'nothing'}"
        )
    if "tasks" in engine.contracts and not isinstance(engine, TaskEngine):
        await engine.aclose()
        raise ConfigError(f"the engine {engine.name!r} stores tasks and must have work()")
    return engine


def connected_engine(engine: Engine, *serves: str) -> ConnectedEngine:
    """Return the engine as a ``State`` uses it."""
    return ConnectedEngine(
        engine.name,
        serves or tuple(sorted(engine.contracts)),
        engine.durability,
        engine.ping,
        engine.aclose,
        version=engine.version,
        capabilities=("plug-in",),
    )
