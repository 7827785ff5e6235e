"""All contracts on a Postgres server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

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
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.admin import PostgresAdmin
from holdfast.engines.postgres.archive import PostgresArchive
from holdfast.engines.postgres.backlog import PostgresBacklog
from holdfast.engines.postgres.blob import PostgresBlobs
from holdfast.engines.postgres.blob_index import PostgresBlobIndex
from holdfast.engines.postgres.boards import PostgresBoards
from holdfast.engines.postgres.channel import PostgresChannels
from holdfast.engines.postgres.checkpoints import PostgresCheckpoints
from holdfast.engines.postgres.data_keys import PostgresDataKeys
from holdfast.engines.postgres.distribution import BY_STATEMENT
from holdfast.engines.postgres.durable_log import PostgresDurableLog
from holdfast.engines.postgres.durable_queue import PostgresDurableQueue
from holdfast.engines.postgres.durable_states import PostgresDurableStates
from holdfast.engines.postgres.embedding_queue import PostgresEmbeddingQueue, tenants_waiting
from holdfast.engines.postgres.engine import Postgres, Revive
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.erasure import PostgresErasures
from holdfast.engines.postgres.fallback_writes import PostgresFallbackWrites
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.indexer import PostgresIndexer
from holdfast.engines.postgres.items import PostgresItems
from holdfast.engines.postgres.keys import PostgresKeys
from holdfast.engines.postgres.long_term import PostgresLongTerm
from holdfast.engines.postgres.round_trips import watch_round_trips
from holdfast.engines.postgres.schedules import PostgresSchedules
from holdfast.engines.postgres.session_moves import PostgresSessionMoves
from holdfast.engines.postgres.short_term import PostgresStates
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.engines.postgres.tasks.work import PostgresWork
from holdfast.engines.postgres.tenants import PostgresTenants
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.engines.postgres.vector import PostgresVectors
from holdfast.engines.postgres.wake import PostgresWake
from holdfast.wiring.connections import ATTRIBUTES, Connections
from holdfast.wiring.embedding_side import EmbeddingSide
from holdfast.wiring.hybrid_sides import DurableSide
from holdfast.wiring.notices import notice
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.stores import Stores


async def connect(request: OpenRequest, *, revive: Revive | None = None) -> Connections:
    """Open a connection pool to the server in the URL; ``revive`` restarts an embedded server."""
    settings = request.settings
    engine = await Postgres.open(
        request.url,
        max_connections=settings.max_connections,
        command_timeout_seconds=settings.command_timeout_seconds,
        search_timeout_seconds=settings.search_timeout_seconds,
        pooler=settings.pooler,
        auto_migrate=settings.auto_migrate,
        allow_unsafe=settings.allow_unsafe,
        revive=revive,
    )
    if engine.login and revive is None:
        notice(
            f"Postgres was opened as {engine.login}, a superuser or the owner of the schema: the "
            "stores work as the role holdfast_app. Use a login role that is only a member of it"
        )
    return connections(engine, request, revive=revive)


def connections(
    engine: Postgres, request: OpenRequest, *, revive: Revive | None = None
) -> Connections:
    """Return the stores on an engine, with its health, maintenance and embedding."""
    return Connections(
        stores=lambda tenant, graph: _stores(engine, tenant, request, graph),
        connected=[connected_engine(engine, managed=revive is not None)],
        work=Work(PostgresWork(engine)),
        again=lambda: connect(_small(request), revive=revive),
        blob_index=lambda tenant: PostgresBlobIndex(engine, tenant=tenant, place="objects"),
        embedding=EmbeddingSide(
            queue=lambda tenant: PostgresEmbeddingQueue(engine, tenant=tenant),
            waiting=lambda model: tenants_waiting(engine, model),
            embedder=request.embedder,
        ),
        indexer=PostgresIndexer(engine),
        backlog=PostgresBacklog(engine),
        tenants=PostgresTenants(engine),
        durable=DurableSide(
            log=lambda tenant: PostgresDurableLog(engine, tenant=tenant),
            transcripts=lambda tenant: PostgresTranscripts(engine, tenant=tenant),
            episodes=lambda tenant: PostgresEpisodes(
                engine, tenant=tenant, embedder=request.embedder
            ),
            queue=PostgresDurableQueue(engine),
            states=PostgresDurableStates(engine, kept_versions=request.settings.state_versions),
            fallback_writes=PostgresFallbackWrites(engine),
            archive=lambda tenant: PostgresArchive(engine, tenant=tenant, hybrid=True),
            distributed=engine.capabilities.distributed,
        ),
        moves=PostgresSessionMoves(engine),
        erasures=lambda tenant: PostgresErasures(engine, tenant=tenant),
        archive=lambda tenant: PostgresArchive(engine, tenant=tenant),
        data_keys=lambda tenant: PostgresDataKeys(engine, tenant=tenant),
    )


def connected_engine(engine: Postgres, *, managed: bool = False) -> ConnectedEngine:
    """Return the engine as a ``State`` uses it; ``managed`` says that the server is embedded."""
    found = engine.capabilities
    return ConnectedEngine(
        engine.name,
        ATTRIBUTES,
        found.unsafe or "committed: on disk when a write returns",
        engine.ping,
        engine.aclose,
        pool=engine.pool_use,
        watch=lambda call: watch_round_trips(engine, call),
        version=found.describe(),
        capabilities=tuple(
            name
            for name, there in (
                ("pgvector", found.pgvector),
                ("iterative index scans", found.iterative_scan),
                ("AGE", found.age),
                (f"tenants isolated by policies, as {found.role}", found.confined),
                (found.where, found.host),
                (found.distributed, found.distributed),
            )
            if there
        ),
        warnings=tuple(
            text
            for text, wrong in (
                (f"{found.unsafe}: an acknowledged write can be lost: turn it on", found.unsafe),
                (
                    "pgvector is older than 0.8 and cannot go on scanning an index: update it",
                    found.pgvector and not found.iterative_scan,
                ),
                (
                    f"no policy applies to {found.role}: log in as a mere member of holdfast_app",
                    not found.confined and not found.distributed,
                ),
                (BY_STATEMENT, found.distributed),
                (
                    f"{engine.login} sees all tenants: log in as a mere member of holdfast_app",
                    engine.login and not managed,
                ),
                (found.failover_warning, found.failover_warning),
            )
            if wrong
        ),
    )


def _small(request: OpenRequest) -> OpenRequest:
    """Return the request with few connections and without automatic migration."""
    settings = dataclasses.replace(request.settings, max_connections=2, auto_migrate=False)
    return dataclasses.replace(request, settings=settings)


async def administration(url: str) -> PostgresAdmin:
    """Open an operator's connection."""
    return await PostgresAdmin.open(url)


def migration_texts(role: str) -> Iterator[str]:
    """Return the SQL of all migrations, and of the grants of a role."""
    for one in migrate.migrations():
        yield f"-- {one.label} (sha256 {one.sha256})\n{one.sql}"
    for file in migrate.function_files():
        yield f"-- {file.label} (sha256 {file.sha256})\n{file.sql}"
    if role:
        yield from (f"{statement};" for statement in migrate.grants(role))


def _stores(
    engine: Postgres, tenant: str, request: OpenRequest, graph: KnowledgeGraph | None
) -> Stores:
    settings, embedder = request.settings, request.embedder
    graph = graph or KnowledgeGraph(PostgresGraph(engine, tenant=tenant))

    def channel(name: str) -> Channel:
        retention = settings.channel_retention_seconds
        storage = PostgresChannels(engine, tenant=tenant)
        return Channel(storage, name=name, retention_seconds=retention)

    return Stores(
        blobs=StoredBlobs(
            PostgresBlobs(engine, tenant=tenant), ttl_seconds=settings.blob_ttl_seconds
        ),
        history=History(PostgresTranscripts(engine, tenant=tenant)),
        vectors=Vectors(PostgresVectors(engine, tenant=tenant), embedder=embedder),
        graph=graph,
        short_term=States(
            PostgresStates(engine, tenant=tenant),
            ttl_seconds=settings.state_ttl_seconds,
            kept_versions=settings.state_versions,
        ),
        long_term=LongTerm(PostgresLongTerm(engine, tenant=tenant), embedder=embedder, graph=graph),
        boards=Boards(PostgresBoards(engine, tenant=tenant)),
        checkpoints=Checkpoints(PostgresCheckpoints(engine, tenant=tenant)),
        items=Items(PostgresItems(engine, tenant=tenant)),
        schedules=Schedules(PostgresSchedules(engine, tenant=tenant)),
        tasks=Ledger(PostgresLedger(engine, tenant=tenant)),
        episodes=EpisodicMemory(
            PostgresEpisodes(engine, tenant=tenant, embedder=embedder),
            state_ttl_seconds=settings.state_ttl_seconds,
            state_versions=settings.state_versions,
        ),
        channel=channel,
        keys=KeyStore(PostgresKeys(engine, tenant=tenant)),
        wakes=Wakes(PostgresWake(engine, tenant=tenant)),
    )
