"""All contracts on the in-memory engine."""

from __future__ import annotations

from holdfast.contracts.blobs import StoredBlobs
from holdfast.contracts.boards import Boards
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import Checkpoints
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
from holdfast.contracts.wakes import Wakes
from holdfast.engines.inmemory.archive import InMemoryArchive
from holdfast.engines.inmemory.backlog import InMemoryBacklog
from holdfast.engines.inmemory.blob import InMemoryBlobs
from holdfast.engines.inmemory.boards import InMemoryBoards
from holdfast.engines.inmemory.channel import InMemoryChannels
from holdfast.engines.inmemory.checkpoints import InMemoryCheckpoints
from holdfast.engines.inmemory.data_keys import InMemoryDataKeys
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.episodes import InMemoryEpisodes
from holdfast.engines.inmemory.erasure import InMemoryErasures
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.engines.inmemory.items import InMemoryItems
from holdfast.engines.inmemory.keys import InMemoryKeys
from holdfast.engines.inmemory.long_term import InMemoryLongTerm
from holdfast.engines.inmemory.schedules import InMemorySchedules
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.engines.inmemory.tasks.work import InMemoryWork
from holdfast.engines.inmemory.tenants import InMemoryTenants
from holdfast.engines.inmemory.transcripts import InMemoryTranscripts
from holdfast.engines.inmemory.vector import InMemoryVectors
from holdfast.engines.inmemory.wake import InMemoryWake
from holdfast.wiring.connections import ATTRIBUTES, Connections
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.stores import Stores


async def connect(request: OpenRequest) -> Connections:
    """Create a new, empty engine in this process."""
    engine = InMemory(clock=request.clock)

    async def nothing() -> None:
        """Do nothing: the engine holds nothing outside the process."""

    durability = "none: it ends with the process"
    return Connections(
        stores=lambda tenant, graph: _stores(engine, tenant, request, graph),
        connected=[ConnectedEngine(engine.name, ATTRIBUTES, durability, nothing, nothing)],
        work=Work(InMemoryWork(engine)),
        backlog=InMemoryBacklog(engine),
        tenants=InMemoryTenants(engine),
        erasures=lambda tenant: InMemoryErasures(engine, tenant=tenant),
        archive=lambda tenant: InMemoryArchive(engine, tenant=tenant),
        data_keys=lambda tenant: InMemoryDataKeys(engine, tenant=tenant),
    )


def _stores(
    engine: InMemory, tenant: str, request: OpenRequest, graph: KnowledgeGraph | None
) -> Stores:
    settings, embedder = request.settings, request.embedder
    graph = graph or KnowledgeGraph(InMemoryGraph(engine, tenant=tenant))

    def channel(name: str) -> Channel:
        retention = settings.channel_retention_seconds
        storage = InMemoryChannels(engine, tenant=tenant)
        return Channel(storage, name=name, retention_seconds=retention)

    return Stores(
        blobs=StoredBlobs(
            InMemoryBlobs(engine, tenant=tenant), ttl_seconds=settings.blob_ttl_seconds
        ),
        history=History(InMemoryTranscripts(engine, tenant=tenant)),
        vectors=Vectors(InMemoryVectors(engine, tenant=tenant), embedder=embedder),
        graph=graph,
        short_term=States(
            InMemoryStates(engine, tenant=tenant),
            ttl_seconds=settings.state_ttl_seconds,
            kept_versions=settings.state_versions,
        ),
        long_term=LongTerm(InMemoryLongTerm(engine, tenant=tenant), embedder=embedder, graph=graph),
        boards=Boards(InMemoryBoards(engine, tenant=tenant)),
        checkpoints=Checkpoints(InMemoryCheckpoints(engine, tenant=tenant)),
        items=Items(InMemoryItems(engine, tenant=tenant)),
        schedules=Schedules(InMemorySchedules(engine, tenant=tenant)),
        tasks=Ledger(InMemoryLedger(engine, tenant=tenant)),
        episodes=EpisodicMemory(
            InMemoryEpisodes(engine, tenant=tenant, embedder=embedder),
            state_ttl_seconds=settings.state_ttl_seconds,
            state_versions=settings.state_versions,
        ),
        channel=channel,
        keys=KeyStore(InMemoryKeys(engine, tenant=tenant)),
        wakes=Wakes(InMemoryWake(engine, tenant=tenant)),
    )
