"""Harnesses of the Postgres engine: 18 by socket, 16 by TCP as the running role, and borrowed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, ClassVar

import asyncpg

from holdfast.contracts.blob_index import BlobIndex
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
from holdfast.contracts.vectors import Vectors
from holdfast.contracts.wakes import Wakes
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.archive import PostgresArchive
from holdfast.engines.postgres.blob import PostgresBlobs
from holdfast.engines.postgres.blob_index import PostgresBlobIndex
from holdfast.engines.postgres.boards import PostgresBoards
from holdfast.engines.postgres.channel import PostgresChannels
from holdfast.engines.postgres.checkpoints import PostgresCheckpoints
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.items import PostgresItems
from holdfast.engines.postgres.keys import PostgresKeys
from holdfast.engines.postgres.long_term import PostgresLongTerm
from holdfast.engines.postgres.roles import make_roles
from holdfast.engines.postgres.schedules import PostgresSchedules
from holdfast.engines.postgres.short_term import PostgresStates
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.engines.postgres.vector import PostgresVectors
from holdfast.engines.postgres.wake import PostgresWake
from holdfast.testing.harness import Harness, front
from holdfast.testing.postgres_server import PASSWORD, PostgresServer
from holdfast.values.ids import new_ref
from tests.engines.kept_engines import kept_engines, put_back, take
from tests.engines.server_folder import server_folder

MOVABLE_CLOCK = """
CREATE SCHEMA holdfast_test;
CREATE TABLE holdfast_test.clock (shift interval NOT NULL, held timestamptz);
INSERT INTO holdfast_test.clock (shift) VALUES ('0');
GRANT USAGE ON SCHEMA holdfast_test TO PUBLIC;
GRANT SELECT, UPDATE ON holdfast_test.clock TO PUBLIC;
CREATE OR REPLACE FUNCTION holdfast.now() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT coalesce(held, clock_timestamp()) + shift FROM holdfast_test.clock $$;
"""
"""The engine asks ``holdfast.now()`` for the time; in tests it can be moved."""


TENANT_TABLES = """
SELECT table_name FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = 'holdfast' AND column_name = 'tenant' AND table_type = 'BASE TABLE'
ORDER BY 1
"""


def _dump_of(tables: list[Any]) -> str:
    """A statement that gives a fingerprint of each table's rows of some tenants."""
    return " UNION ALL ".join(
        f"SELECT '{table} ' || count(*) || ' ' || "  # noqa: S608 - names of the catalog
        "coalesce(md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))), '') "
        f"FROM holdfast.{table} t WHERE t.tenant >= $1 AND t.tenant < $2"
        for [table] in tables
    )


@cache
def server(major: int) -> PostgresServer:
    """One server for all tests of a run, started when it is first needed."""
    found = PostgresServer(major, folder=server_folder("hf-pg-"))
    found.start()
    return found


class PostgresHarness(Harness):
    """Embedded's Postgres 18 over a unix socket, as the superuser."""

    name = "postgres18"
    major: ClassVar[int] = 18
    database: ClassVar[str] = "holdfast_suite"
    stores: ClassVar[dict[str, Callable[..., Any]]] = {
        "short_term": front(States, PostgresStates, "ttl_seconds", "kept_versions"),
        "boards": front(Boards, PostgresBoards),
        "channels": front(Channel, PostgresChannels, "name", "retention_seconds"),
        "checkpoints": front(Checkpoints, PostgresCheckpoints),
        "items": front(Items, PostgresItems),
        "blobs": front(StoredBlobs, PostgresBlobs, "ttl_seconds"),
        "blob_index": front(BlobIndex, PostgresBlobIndex),
        "episodes": front(EpisodicMemory, PostgresEpisodes),
        "history": front(History, PostgresTranscripts),
        "keys": front(KeyStore, PostgresKeys),
        "schedules": front(Schedules, PostgresSchedules),
        "tasks": front(Ledger, PostgresLedger),
        "vectors": front(Vectors, PostgresVectors, "embedder"),
        "graph": front(KnowledgeGraph, PostgresGraph),
        "long_term": front(LongTerm, PostgresLongTerm, "embedder", "graph", "mode", "language"),
    }
    contracts = frozenset({*stores, "memory"})
    state_versions = 3
    _ready: ClassVar[set[str]] = set()
    _dump: ClassVar[str] = ""

    @classmethod
    def url(cls) -> str:
        """How the engine connects."""
        return server(cls.major).url(database=cls.database)

    @classmethod
    def keep_engines(cls) -> AbstractAsyncContextManager[None]:
        """The engines of these tests."""
        return kept_engines()

    async def open(self) -> None:
        """A tenant of this test's own, at the real time."""
        await self._prepare_database()
        self._prefix = f"{new_ref()}~"
        self.engine = await take(type(self), self._connect, Postgres)
        await self._shift("shift * 0, held = NULL")

    async def _connect(self) -> Postgres:
        return await Postgres.open(self.url(), max_connections=8, search_timeout_seconds=60)

    async def close(self) -> None:
        """Leave the engine to the next test."""
        await put_back(type(self), self.engine)

    async def reopen(self) -> None:
        """A new pool on the same database."""
        await self.engine.aclose()
        self.engine = await self._connect()

    async def elapse(self, seconds: float) -> None:
        """Move the engine's clock."""
        await self._shift(f"shift + interval '{float(seconds)} seconds'")

    async def hold_clock(self) -> None:
        """Stop the engine's clock."""
        await self._shift("shift, held = clock_timestamp()")

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store on the shared pool."""
        return self.stores[contract](self.engine, tenant=self._prefix + tenant, **options)

    def wakes(self, *, tenant: str = "default") -> Wakes:
        """How sessions are found."""
        return Wakes(PostgresWake(self.engine, tenant=self._prefix + tenant))

    def archive(self, *, tenant: str = "default") -> PostgresArchive:
        """What dumps and loads the data of a tenant."""
        return PostgresArchive(self.engine, tenant=self._prefix + tenant)

    async def raw(self, contract: str) -> list[str | bytes]:  # noqa: ARG002 - one dump serves all
        """A fingerprint of each table's rows of this test's tenants, read around the stores."""
        keeper = await take((type(self), "keeper"), self._connect_keeper, Keeper)
        try:
            if not self._dump:
                type(self)._dump = _dump_of(await keeper.connection.fetch(TENANT_TABLES))
            until = f"{self._prefix}\U0010ffff"
            return [
                row[0] for row in await keeper.connection.fetch(self._dump, self._prefix, until)
            ]
        finally:
            await put_back((type(self), "keeper"), keeper)

    async def _connect_keeper(self) -> Keeper:
        return Keeper(await asyncpg.connect(server(self.major).url(database=self.database)))

    async def damage_blob(self, ref: str, *, truncate: bool) -> None:
        """Cut off or alter the last byte of a stored blob."""
        kept = "substring(data FROM 1 FOR length(data) - 1)"
        altered = "set_byte(data, length(data) - 1, get_byte(data, length(data) - 1) # 255)"
        async with self._admin() as connection:
            await connection.execute(
                "UPDATE holdfast.blob_chunks "  # noqa: S608 - expressions of our own
                f"SET data = {kept if truncate else altered} "
                "WHERE starts_with(tenant, $1) AND ref = $2 AND number = ("
                "SELECT max(number) FROM holdfast.blob_chunks WHERE ref = $2)",
                *(self._prefix, ref),
            )

    async def _shift(self, to: str) -> None:
        async with self.engine.connection(writes=True) as connection:
            await connection.execute(
                f"UPDATE holdfast_test.clock SET shift = {to}"  # noqa: S608 - numbers of our own
            )

    def _admin(self) -> Any:
        return Connection(server(self.major).url(database=self.database))

    async def _prepare_database(self) -> None:
        if self.name in self._ready:
            return
        async with Connection(server(self.major).url()) as connection:
            await connection.execute(f'DROP DATABASE IF EXISTS "{self.database}"')
            await connection.execute(f'CREATE DATABASE "{self.database}"')
        async with self._admin() as connection:
            await migrate.migrate(connection)
            await connection.execute(MOVABLE_CLOCK)
            await self._grant(connection)
        self._ready.add(self.name)

    async def _grant(self, connection: Any) -> None:
        """The superuser needs nothing."""


class Keeper:
    """The connection of the superuser, who reads around the stores; it stays open like engines."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def aclose(self) -> None:
        """Close it."""
        await self.connection.close()


class Connection:
    """A connection for a moment."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> Any:
        self._connection = await asyncpg.connect(self._url)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()


class Postgres16Harness(PostgresHarness):
    """Postgres 16 by TCP and password, as the least-privilege role of the docs."""

    name = "postgres16"
    major = 16
    database = "holdfast_role"

    @classmethod
    def url(cls) -> str:
        """As the running role."""
        return server(cls.major).url(user="holdfast_app", database=cls.database, tcp=True)

    async def _grant(self, connection: Any) -> None:
        await connection.execute("DROP ROLE IF EXISTS holdfast_app")
        await connection.execute(f"CREATE ROLE holdfast_app LOGIN PASSWORD '{PASSWORD}'")
        for statement in migrate.grants("holdfast_app"):
            await connection.execute(statement)


class _Borrower(Postgres):
    """The engine leaves a borrowed pool open; whoever made it closes it."""

    async def aclose(self) -> None:
        """Close the engine, and then the pool."""
        await super().aclose()
        assert not self._pool.is_closing()
        await self._pool.close()


class BorrowedPoolHarness(PostgresHarness):
    """A pool that somebody else made, with the driver's defaults."""

    name = "postgres18-borrowed"
    database = "holdfast_borrowed"
    machine_thrift = 5

    async def _connect(self) -> Postgres:
        pool = await asyncpg.create_pool(
            self.url(), min_size=1, max_size=8, server_settings={"role": "holdfast_app"}
        )
        return await _Borrower.from_pool(pool)

    async def _grant(self, connection: Any) -> None:
        await make_roles(connection)
