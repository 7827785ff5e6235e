"""The connections that all views of one opened ``State`` share."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.tasks.work import WorkSignal
from holdfast.sealing.data_keys import DataKeys
from holdfast.sealing.seal import Seal
from holdfast.spi.archive.storage import ArchiveStorage
from holdfast.spi.backlog import BacklogStorage
from holdfast.spi.blob_index import BlobIndexStorage
from holdfast.spi.data_keys import DataKeyStorage
from holdfast.spi.erasure import ErasureStorage, Store, StoreFinder
from holdfast.spi.event_indexing import EventIndexer
from holdfast.spi.key_provider import KeyProvider
from holdfast.spi.session_moves import SessionMoves
from holdfast.spi.tenants import TenantList
from holdfast.values.errors import ConfigError
from holdfast.values.limits import DEFAULT_LIMITS
from holdfast.wiring.embedding_side import EmbeddingSide
from holdfast.wiring.health import Health
from holdfast.wiring.hybrid_sides import DurableSide, HybridSide
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.sealing import seal_stores
from holdfast.wiring.stores import Stores
from holdfast.wiring.telemetry import Tracing

ATTRIBUTES: tuple[str, ...] = tuple(
    slot.name for slot in dataclasses.fields(Stores) if slot.name not in {"memory_log", "wakes"}
)
"""The attributes of a ``State`` that an engine can serve."""


class Connections:
    """The engines of an opened ``State``, and whether they are open.

    Of two connected engines with the same attribute, the later one serves it. ``again`` opens the
    main engine once more on another event loop.
    """

    def __init__(
        self,
        *,
        stores: Callable[[str, KnowledgeGraph | None], Stores],
        connected: list[ConnectedEngine],
        work: WorkSignal | None = None,
        again: Callable[[], Awaitable[Connections]] | None = None,
        blob_index: Callable[[str], BlobIndexStorage] | None = None,
        embedding: EmbeddingSide | None = None,
        indexer: EventIndexer | None = None,
        backlog: BacklogStorage | None = None,
        tenants: TenantList | None = None,
        durable: DurableSide | None = None,
        moves: SessionMoves | None = None,
        erasures: Callable[[str], ErasureStorage] | None = None,
        archive: Callable[[str], ArchiveStorage] | None = None,
        data_keys: Callable[[str], DataKeyStorage] | None = None,
    ) -> None:
        self._stores = stores
        self._changes: list[Callable[[str, Stores], Stores]] = []
        self._graph: Callable[[str], KnowledgeGraph] | None = None
        self.connected = connected
        self.work = work
        self.again = again
        self.blob_index = blob_index
        self.durable = durable
        self.moves = moves
        self.erasures = erasures
        self.finders: dict[Store, Callable[[str], StoreFinder]] = {}
        self.receipt_key = ""
        self.data_keys = data_keys
        self.provider: KeyProvider | None = None
        self.plain_vectors = False
        self._seals: dict[str, Seal] = {}
        self.tracing: Tracing | None = None
        self.archive = archive
        self.unarchived: frozenset[str] = frozenset()
        """The attributes whose engine cannot dump its data."""
        self.hybrid: HybridSide | None = None
        self.embedding = embedding
        self.indexer = indexer
        self.backlog = backlog
        self.tenants = tenants
        self.limits = DEFAULT_LIMITS
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        self.loop = asyncio.get_running_loop()
        self.closed = False

    def add(self, connected: ConnectedEngine, change: Callable[[str, Stores], Stores]) -> None:
        """Add an engine; ``change`` replaces the stores of a tenant that the engine serves."""
        self.connected.append(connected)
        self._changes.append(change)
        self.unarchived |= frozenset(connected.serves)

    def use_graph(self, connected: ConnectedEngine, graph: Callable[[str], KnowledgeGraph]) -> None:
        """Add an engine that serves the graph, also to the stores that use the graph."""
        self.connected.append(connected)
        self._graph = graph
        self.unarchived |= {"graph"}

    def stores(self, tenant: str) -> Stores:
        """Return the stores of a tenant."""
        found = self._stores(tenant, self._graph(tenant) if self._graph else None)
        for change in self._changes:
            found = change(tenant, found)
        serving = self.engines
        if found.episodes is not None and serving.get("short_term") != serving["episodes"]:
            found.episodes.refuse_patches(serving.get("short_term", "no engine"))
        found.use_limits(self.limits)
        sealed = seal_stores(found, self.seal(tenant))
        return sealed if self.tracing is None else self.tracing.stores(sealed, serving, tenant)

    def use_tracing(self, tracing: Tracing | None) -> None:
        """Trace all calls of all tenants, and count their round trips."""
        self.tracing = tracing
        if tracing is not None:
            tracing.watch(self)

    def use_provider(self, provider: KeyProvider | None, *, plain_vectors: bool) -> None:
        """Encrypt the content of all tenants with the keys of a provider."""
        self.provider, self.plain_vectors = provider, plain_vectors

    def seal(self, tenant: str) -> Seal:
        """Return what encrypts the values of a tenant; all views share its data keys."""
        if tenant not in self._seals:
            keys = None
            if self.provider is not None and self.data_keys is not None:
                keys = DataKeys(self.data_keys(tenant), self.provider, tenant=tenant)
            self._seals[tenant] = Seal(tenant, keys, plain_vectors=self.plain_vectors)
        return self._seals[tenant]

    async def rewrap(self, tenant: str, progress: Callable[[int], None] | None) -> int:
        """Wrap a tenant's data keys with the provider's current key. Returns how many changed."""
        keys = self.seal(tenant).keys
        return 0 if keys is None else await keys.rewrap(progress)

    async def rotate(
        self, tenant: str, older_than_seconds: float, progress: Callable[[int], None] | None
    ) -> int:
        """Replace a tenant's data keys older than this by new ones. Returns how many."""
        keys = self.seal(tenant).keys
        return 0 if keys is None else await keys.rotate(older_than_seconds, progress)

    @property
    def engines(self) -> dict[str, str]:
        """Return the engine name by attribute."""
        return {attribute: one.engine for one in self.connected for attribute in one.serves}

    async def probe(self) -> Health:
        """Ping all engines concurrently and return their health."""
        serving = self.engines
        engines = [
            one.serving(*(name for name in one.serves if serving[name] == one.engine))
            for one in self.connected
        ]
        return Health(tuple(await asyncio.gather(*(one.probe() for one in engines))))

    async def close(self) -> None:
        """Close all engines in reverse order, even if closing one of them fails."""
        async with AsyncExitStack() as stack:
            for one in self.connected:
                stack.push_async_callback(one.close)
            for callback in self.on_close:
                stack.push_async_callback(callback)

    def check_usable(self) -> None:
        """Raise if the state is closed, or is used on another event loop than it was opened on."""
        if self.closed:
            raise ConfigError("this State is closed: open another with holdfast.open()")
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigError(
                "this State needs its event loop: await it there, or use holdfast.blocking"
            ) from None
        if running is not self.loop:
            raise ConfigError("this State was opened on another event loop: open one on each loop")
