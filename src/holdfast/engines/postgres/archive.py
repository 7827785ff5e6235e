"""Export and import on Postgres: an export reads one transaction, an import writes in batches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

from holdfast.engines.postgres import archive_rows as rows
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.queries import filled, load
from holdfast.engines.postgres.tenancy import for_tenant
from holdfast.engines.postgres.vector import PostgresVectors
from holdfast.spi.archive import records as of
from holdfast.spi.archive.conflicts import holds_data
from holdfast.spi.archive.kinds import KINDS
from holdfast.spi.archive.storage import ArchiveSnapshot, ArchiveStorage
from holdfast.spi.archive.vectors import unpack_vector
from holdfast.spi.document_draft import DocumentDraft
from holdfast.spi.graph_draft import EntityDraft, RelationshipDraft
from holdfast.values.blobs import MAX_CHUNK_BYTES
from holdfast.values.codec import decode_json
from holdfast.values.graph import entity_keys

_DUMP = load("archive_dump")
_LOAD = load("archive_load")
_BLOB = load("blob")
_PLACE = "/* place */ 'postgres'"
_ROWS = 32
"""How many rows of a table are fetched at once."""
_CHUNKS = 4
_LANGUAGE = "english"
"""Facts are imported with the word index of this language; a search in another one adds its own."""


class _Snapshot(ArchiveSnapshot):
    """The open transaction that an export reads from."""

    def __init__(self, connection: Any, archive: PostgresArchive, at: datetime) -> None:
        self._connection = connection
        self._archive = archive
        self._tenant = archive.tenant
        self.at = at

    async def records(self, kind: str) -> AsyncGenerator[of.Record, None]:
        """Yield all records of one kind, such as ``events``."""
        kind = self._archive.table_of(kind)
        sql = filled(_DUMP[kind], {_PLACE: f"'{self._archive.place}'"})
        with self._connection.watched():
            cursor = await self._connection.bare.cursor(for_tenant(sql), self._tenant, self.at)
        while True:
            with self._connection.watched():
                found = await cursor.fetch(_ROWS)
            for row in found:
                yield rows.to_record(kind, row)
            if len(found) < _ROWS:
                return

    async def blob(self, ref: str) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a blob."""
        first = 0
        while found := await self._connection.fetch(
            _BLOB["chunks"], self._tenant, ref, first, first + _CHUNKS - 1
        ):
            for row in found:
                yield row["data"]
            first += _CHUNKS


class PostgresArchive(ArchiveStorage):
    """Exports and imports the data of one tenant in Postgres.

    With ``hybrid``, states are read from the table in which the hybrid engine saves them. ``place``
    is ``objects`` if the bytes of blobs are in an object store. ::

        archive = PostgresArchive(engine, tenant="acme")
    """

    kinds = frozenset(kind.name for kind in KINDS)

    def __init__(
        self,
        engine: Postgres,
        *,
        tenant: str = "default",
        hybrid: bool = False,
        place: Literal["postgres", "objects"] = "postgres",
    ) -> None:
        self._engine = engine
        self._hybrid = hybrid
        self.place = place
        self.tenant = self._tenant = tenant
        self._vectors = PostgresVectors(engine, tenant=tenant)
        self._graph = PostgresGraph(engine, tenant=tenant)

    def for_objects(self) -> PostgresArchive:
        """Return an archive of the same tenant whose blobs have their bytes in an object store."""
        return PostgresArchive(
            self._engine, tenant=self._tenant, hybrid=self._hybrid, place="objects"
        )

    def table_of(self, kind: str) -> str:
        """Return the name of the SQL statements for a kind of records."""
        return rows.SAVED.get(kind, kind) if self._hybrid else kind

    async def date_blob(self, record: of.BlobRecord) -> None:
        """Set the times of a blob in an object store to those of its record."""
        await self._run(_LOAD["date_blob"], record.ref, record.created_at, record.expires_at)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[ArchiveSnapshot]:
        """Open a read-only transaction that sees one snapshot of the database."""
        async with (
            self._engine.connection(writes=False, tenant=self._tenant) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            at = await connection.fetchval(_DUMP["now"], self._tenant)
            yield _Snapshot(connection, self, at)

    async def load(self, kind: str, records: Sequence[Any]) -> None:
        """Store records of one kind."""
        kind = self.table_of(kind)
        match kind:
            case _ if not records:
                return
            case "documents":
                await self._load_documents(records)
            case "entities":
                drafts = [_entity(one) for one in records]
                await self._graph.put_entities(drafts)
            case "relationships":
                await self._graph.put_relationships([_relationship(one) for one in records])
            case "blobs":
                pass  # load_blob stores a blob together with its bytes
            case "facts":
                found = [rows.words(one, _LANGUAGE) for one in records]
                words = [list(column) for column in zip(*found, strict=True)]
                values = rows.columns(kind, records, tenant=self._tenant)
                await self._run(_LOAD[kind], *values, _LANGUAGE, *words)
            case _:
                await self._run(_LOAD[kind], *rows.columns(kind, records, tenant=self._tenant))
                await self._load_rest(kind, records)

    async def _load_rest(self, kind: str, records: Sequence[Any]) -> None:
        """Store the parts of records that need a second statement, such as vectors of events."""
        match kind:
            case "events":
                given = [one for one in records if one.vector is not None]
                if given:
                    vectors = [unpack_vector(one.vector) for one in given]
                    numbers = [number for vector in vectors for number in vector]
                    where = ([one.session for one in given], [one.id for one in given])
                    await self._run(_LOAD["event_vectors"], *where, numbers, len(vectors[0]))
            case "boards":
                if cards := rows.cards(records):
                    await self._run(_LOAD["cards"], *cards)
            case "task_events":
                tasks = list({one.task_id for one in records if one.kind == "artifact"})
                if tasks:
                    await self._run(_LOAD["task_artifacts"], tasks)
            case "deliveries":
                lanes = [one.task_id for one in records], [one.config_id for one in records]
                await self._run(_LOAD["advance_outbox"], *lanes)

    async def _load_documents(self, records: Sequence[of.DocumentRecord]) -> None:
        for collection, group in groupby(records, key=lambda one: one.collection):
            drafts = [
                DocumentDraft(
                    *(one.id, one.blocks, one.metadata, unpack_vector(one.vector), "", one.subject)
                )
                for one in group
            ]
            await self._vectors.write(collection, drafts, replace=True)

    async def load_blob(self, record: of.BlobRecord, chunks: AsyncIterator[bytes]) -> None:
        """Store the bytes of a blob and then its ref, in one transaction."""
        async with (
            self._engine.connection(writes=True, tenant=self._tenant) as connection,
            connection.transaction(),
        ):
            if await connection.fetchval(_LOAD["blob_exists"], self._tenant, record.ref):
                return
            number, rest = 0, b""
            async for chunk in chunks:
                rest += chunk
                while len(rest) >= MAX_CHUNK_BYTES:
                    piece, rest = rest[:MAX_CHUNK_BYTES], rest[MAX_CHUNK_BYTES:]
                    await connection.execute(
                        _BLOB["append"], self._tenant, record.ref, number, [piece]
                    )
                    number += 1
            if rest:
                await connection.execute(_BLOB["append"], self._tenant, record.ref, number, [rest])
            await connection.execute(
                *(_LOAD["blob"], self._tenant, record.ref, record.size_bytes),
                *(record.content_type, record.sha256, record.created_at, record.expires_at),
                record.subject,
            )

    async def begin_import(self, archive: str) -> frozenset[str] | None:
        """Start or continue an import."""
        where = (self._tenant, archive)
        found = await self._engine.fetchrow(_LOAD["import_state"], *where, safe=True)
        if found is None:
            async with self.snapshot() as now:
                for kind in KINDS:
                    async with aclosing(now.records(kind.name)) as found_records:
                        async for _ in found_records:
                            raise holds_data(self._tenant, kind.name)
            await self._engine.fetch(_LOAD["begin_import"], *where, safe=True)
            return frozenset()
        return None if found["finished"] else frozenset(found["segments"])

    async def segment_loaded(self, archive: str, segment: str) -> None:
        """Record that a segment is loaded."""
        await self._run(_LOAD["segment_loaded"], archive, segment)

    async def finish_import(self, archive: str) -> None:
        """Record that the whole archive is loaded."""
        await self._run(_LOAD["finish_import"], archive)

    async def _run(self, sql: Any, *args: Any) -> None:
        # Every statement here has no further effect when it is repeated.
        await self._engine.fetch(sql, self._tenant, *args, safe=True)


def _entity(one: of.EntityRecord) -> EntityDraft:
    names = list(one.names) or entity_keys(one.id, decode_json(one.properties))
    return EntityDraft(one.id, one.label, one.properties, names, one.subject)


def _relationship(one: of.RelationshipRecord) -> RelationshipDraft:
    ends = (one.id, one.source, one.target)
    return RelationshipDraft(*ends, one.type, one.properties, one.subject)
