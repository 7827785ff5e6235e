"""Holdfast on SQLite: an engine of another distribution, with its harness for the suite."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast import ChatMessage, UnavailableError
from holdfast.contracts.history import History
from holdfast.spi.engine import Engine
from holdfast.spi.transcripts import (
    LogEntry,
    TranscriptKey,
    TranscriptPage,
    Transcripts,
    another_body,
    message_from_body,
)
from holdfast.testing import Harness

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    tenant TEXT, session TEXT, last INTEGER NOT NULL, PRIMARY KEY (tenant, session)
);
CREATE TABLE IF NOT EXISTS messages (
    tenant TEXT, session TEXT, id TEXT, seq INTEGER, agent TEXT, run TEXT, at TEXT, body TEXT,
    PRIMARY KEY (tenant, session, id)
);
CREATE INDEX IF NOT EXISTS by_agent ON messages (tenant, session, agent, seq);
"""
NUMBER = """
INSERT INTO sessions VALUES (?, ?, 1)
ON CONFLICT (tenant, session) DO UPDATE SET last = last + 1 RETURNING last
"""
FIND = "SELECT agent, run, at, body FROM messages WHERE tenant = ? AND session = ? AND id = ?"
MINE = "FROM messages WHERE tenant = ? AND session = ? AND agent = ?"
PAGE = f"SELECT body, id, at, seq {MINE} AND seq > ? ORDER BY seq LIMIT ? OFFSET ?"
NEWEST = f"SELECT body, id, at, seq {MINE} ORDER BY seq DESC LIMIT ?"
ALL = -1


class SqliteEngine(Engine):
    """One file; all calls run in a thread, one after the other."""

    name = "sqlite"
    version = f"SQLite {sqlite3.sqlite_version}"
    durability = "committed: in the file when a write returns"
    contracts = frozenset({"history"})

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._database.executescript(SCHEMA)
        self._turn = asyncio.Lock()

    async def run(self, work: Any, *args: Any) -> Any:
        """Run one transaction."""

        def transaction() -> Any:
            with self._database as database:
                database.execute("BEGIN IMMEDIATE")
                return work(database, *args)

        async with self._turn:
            return await asyncio.to_thread(transaction)

    def storage(self, contract: str, tenant: str) -> Any:
        """The transcripts of a tenant."""
        assert contract == "history"
        return SqliteTranscripts(self, tenant=tenant)

    async def ping(self) -> None:
        """Read something."""
        try:
            await self.run(lambda database: database.execute("SELECT 1"))
        except sqlite3.Error as error:
            raise UnavailableError(self.name, str(error)) from error

    async def aclose(self) -> None:
        """Close the file."""
        self._database.close()


class SqliteTranscripts(Transcripts):
    """A row for each message."""

    def __init__(self, engine: SqliteEngine, *, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        await self._engine.run(self._append, entries)

    def _append(self, database: sqlite3.Connection, entries: Sequence[LogEntry]) -> None:
        for one in entries:
            row = (one.agent, one.run, one.occurred_at.isoformat(), one.body)
            where = (self._tenant, one.session)
            there = database.execute(FIND, (*where, one.id)).fetchone()
            if there not in (None, row):
                raise another_body(one.session, one.id)
            if there is None:
                [seq] = database.execute(NUMBER, where).fetchone()
                values = (*where, one.id, seq, *row)
                database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> list[ChatMessage]:
        """Return a page of messages, ascending."""
        mine = (self._tenant, key.session, key.agent)
        if page.last is not None:
            rows = (await self._rows(NEWEST, *mine, page.last))[::-1]
        else:
            limit = ALL if page.limit is None else page.limit
            rows = await self._rows(PAGE, *mine, page.after_seq or 0, limit, page.offset)
        return [
            message_from_body(body, id=name, created_at=datetime.fromisoformat(at), seq=seq)
            for body, name, at, seq in rows
        ]

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete messages; the session's last number stays."""
        mine = (self._tenant, key.session, key.agent)
        await self._rows(f"DELETE {MINE} AND run = coalesce(?, run)", *mine, run)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
        [[count]] = await self._rows(f"SELECT count(*) {MINE}", self._tenant, *key[::-1])
        return int(count)

    async def _rows(self, sql: str, *args: Any) -> list[Any]:
        found: list[Any] = await self._engine.run(lambda db: db.execute(sql, args).fetchall())
        return found


async def open_engine(url: str) -> SqliteEngine:
    """Open ``sqlite:PATH``."""
    return SqliteEngine(url.partition(":")[2])


class SqliteHarness(Harness):
    """The engine in a folder of its own, for ``pytest --pyargs holdfast.testing``."""

    name = "sqlite"
    contracts = SqliteEngine.contracts

    async def open(self) -> None:
        """Open an empty file."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "notes.db"
        self.engine = await open_engine(f"sqlite:{self.path}")

    async def close(self) -> None:
        """Remove it."""
        await self.engine.aclose()
        self.folder.cleanup()

    async def reopen(self) -> None:
        """Open it again."""
        await self.engine.aclose()
        self.engine = await open_engine(f"sqlite:{self.path}")

    async def elapse(self, seconds: float) -> None:
        """Nothing expires here."""

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """What checks, in front of what stores."""
        return History(self.engine.storage(contract, tenant), **options)

    async def raw(self, contract: str) -> list[str | bytes]:  # noqa: ARG002 - there is but one
        """All rows of all tenants."""
        rows = await self.engine.run(
            lambda db: db.execute("SELECT * FROM messages ORDER BY 1, 2, 3").fetchall()
        )
        return [repr(row) for row in rows]
