"""Holdfast on SQLite: an engine of another distribution, with its harness for the suite."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.spi import StateSnapshot, states, transcripts
from holdfast.spi.engine import Engine, EngineOptions
from holdfast.spi.transcripts import LogEntry, MessageRow, Tail, TranscriptKey, TranscriptPage
from holdfast.testing import Harness

SCHEMA = """
CREATE TABLE IF NOT EXISTS counters (tenant TEXT, name TEXT, last INT, PRIMARY KEY (tenant, name));
CREATE TABLE IF NOT EXISTS messages (
    tenant TEXT, session TEXT, id TEXT, seq INTEGER, agent TEXT, run TEXT, body TEXT, at TEXT,
    PRIMARY KEY (tenant, session, id)
);
CREATE INDEX IF NOT EXISTS by_agent ON messages (tenant, session, agent, seq);
CREATE TABLE IF NOT EXISTS states (
    tenant TEXT, session TEXT, body TEXT, version INTEGER, ttl REAL, expires REAL,
    PRIMARY KEY (tenant, session)
);
"""
NUMBER = """INSERT INTO counters VALUES (?, ?, 1)
ON CONFLICT (tenant, name) DO UPDATE SET last = last + 1 RETURNING last"""
ADD = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
PUT = "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)"
FIND = "SELECT agent, run, body FROM messages WHERE tenant = ? AND session = ? AND id = ?"
MINE = "FROM messages WHERE tenant = ? AND session = ? AND agent = ?"
PAGE = f"SELECT body, id, at, seq {MINE} AND seq > ? ORDER BY seq LIMIT ? OFFSET ?"
NEWEST = f"SELECT body, id, at, seq {MINE} ORDER BY seq DESC LIMIT ?"
OF_SESSION = "FROM states WHERE tenant = ? AND session = ?"
STATE = f"SELECT body, version, ttl, expires {OF_SESSION}"
LAST = f"SELECT coalesce(max(seq), 0) {MINE}"
AFTER = f"{MINE} AND seq > ?"
POP = f"DELETE {MINE} AND seq = (SELECT max(seq) {MINE}) RETURNING body, id, at, seq"


class SqliteEngine(Engine):
    """One file; all calls run in a thread, one after the other."""

    name = "sqlite"
    version = f"SQLite {sqlite3.sqlite_version}"
    durability = "committed: in the file when a write returns"
    contracts = frozenset({"history", "short_term"})

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.executescript(SCHEMA)
        self._turn, self.shift = asyncio.Lock(), 0.0

    async def run(self, work: Any, *args: Any) -> Any:
        """Run one transaction."""

        def transaction() -> Any:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                return work(self._database, *args)

        async with self._turn:
            return await asyncio.to_thread(transaction)

    def now(self) -> float:
        """The time, which a test may move."""
        return time.time() + self.shift

    def storage(self, contract: str, tenant: str) -> Any:
        """What stores for a contract."""
        return {"history": SqliteTranscripts, "short_term": SqliteStates}[contract](self, tenant)

    async def ping(self) -> None:
        """Begin a transaction."""
        await self.run(lambda _database: None)

    async def aclose(self) -> None:
        """Close the file."""
        self._database.close()


class Table:
    """What both contracts need: the file, and the tenant."""

    def __init__(self, engine: SqliteEngine, tenant: str) -> None:
        self._engine, self._tenant = engine, tenant

    async def _rows(self, sql: str, *args: Any) -> list[Any]:
        return list(await self._engine.run(lambda db: db.execute(sql, args).fetchall()))


class SqliteTranscripts(Table, transcripts.Transcripts):
    """A row for each message."""

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        await self._engine.run(self._append, entries)

    def _append(self, db: sqlite3.Connection, entries: Sequence[LogEntry]) -> None:
        for one in entries:
            row, key = (one.agent, one.run, one.body), (self._tenant, one.session, one.id)
            there = db.execute(FIND, key).fetchone()
            if there not in (None, row):
                raise transcripts.another_body(one.session, one.id)
            if there is None:
                [seq] = db.execute(NUMBER, (self._tenant, f"m{one.session}")).fetchone()
                db.execute(ADD, (*key, seq, *row, one.occurred_at.isoformat()))

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        mine = (self._tenant, key.session, key.agent)
        if page.last is not None:
            return [_row(row) for row in await self._rows(NEWEST, *mine, page.last)][::-1]
        limit = -1 if page.limit is None else page.limit
        rows = await self._rows(PAGE, *mine, page.after_seq or 0, limit, page.offset)
        return [_row(row) for row in rows]

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove and return the newest message."""
        rows = await self._rows(POP, *(self._tenant, key.session, key.agent) * 2)
        return _row(rows[0]) if rows else None

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the newest messages, all or none."""
        return int(await self._engine.run(self._replace_tail, key, tail))

    def _replace_tail(self, db: sqlite3.Connection, key: TranscriptKey, tail: Tail) -> int:
        mine = (self._tenant, key.session, key.agent)
        after = (*mine, tail.after_seq)
        [last] = db.execute(LAST, mine).fetchone()
        there = db.execute(f"SELECT id, run, body {AFTER} ORDER BY seq", after).fetchall()
        if tail.check(key.session, last, there):
            db.execute(f"DELETE {AFTER}", after)
            for one in tail.entries:
                if db.execute(FIND, (self._tenant, key.session, one.id)).fetchone():
                    raise transcripts.another_body(key.session, one.id)
            self._append(db, tail.entries)
        return int(db.execute(LAST, mine).fetchone()[0])

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete messages; the session's last number stays."""
        sql = f"DELETE {MINE} AND run = coalesce(?, run)"
        await self._rows(sql, self._tenant, key.session, key.agent, run)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
        return len(await self._rows(f"SELECT 1 {MINE}", self._tenant, key.session, key.agent))


def _row(row: Any) -> MessageRow:
    return row[0], row[1], datetime.fromisoformat(row[2]), row[3]


class SqliteStates(Table, states.StateStorage):
    """A row for each session."""

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state, or some keys of it."""
        if (row := await self._engine.run(self._row, session)) is None:
            return StateSnapshot({})
        texts = states.decode_json(row[0])
        some = texts if keys is None else [key for key in texts if key in keys]
        ends = None if row[3] is None else datetime.fromtimestamp(row[3], UTC)
        return StateSnapshot({key: states.decode_json(texts[key]) for key in some}, row[1], ends)

    async def write(self, write: states.StateWrite, expected: int | None) -> int:
        """Replace or patch a state."""
        return int(await self._engine.run(self._write, write, expected))

    def _write(self, db: sqlite3.Connection, write: states.StateWrite, expected: int | None) -> int:
        row = self._row(db, write.session)
        states.expect_version(write.session, expected, row[1] if row else 0)
        ttl = row[2] if row and write.ttl_seconds is None else write.ttl_seconds
        [version] = db.execute(NUMBER, (self._tenant, "versions")).fetchone()
        body = states.encode_json(write.merged(states.decode_json(row[0]) if row else {}))
        ends = None if ttl is None else self._engine.now() + ttl
        db.execute(PUT, (self._tenant, write.session, body, version, ttl, ends))
        return int(version)

    async def clear(self, session: str) -> None:
        """Delete a state."""
        await self._rows(f"DELETE {OF_SESSION}", self._tenant, session)

    def _row(self, db: sqlite3.Connection, session: str) -> Any:
        row = db.execute(STATE, (self._tenant, session)).fetchone()
        return None if row and row[3] is not None and row[3] <= self._engine.now() else row


async def open_engine(url: str, _options: EngineOptions | None = None) -> SqliteEngine:
    """Open ``sqlite:PATH``."""
    return SqliteEngine(url.partition(":")[2])


class SqliteHarness(Harness):
    """The engine in a folder of its own, for ``pytest --pyargs holdfast.testing``."""

    name = "sqlite"
    contracts = SqliteEngine.contracts

    async def open(self) -> None:
        """Open an empty file."""
        self.folder, self.shift = tempfile.TemporaryDirectory(), 0.0
        await self._connect()

    async def _connect(self) -> None:
        self.engine = await open_engine(f"sqlite:{Path(self.folder.name) / 'notes.db'}")
        self.engine.shift = self.shift

    async def close(self) -> None:
        """Remove it."""
        await self.engine.aclose()
        self.folder.cleanup()

    async def reopen(self) -> None:
        """Open it again."""
        await self.engine.aclose()
        await self._connect()

    async def elapse(self, seconds: float) -> None:
        """Move the engine's clock."""
        self.shift += seconds
        self.engine.shift = self.shift

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """What checks, in front of what stores."""
        checks: Any = {"history": History, "short_term": States}[contract]
        return checks(self.engine.storage(contract, tenant), **options)

    async def raw(self, contract: str) -> list[str | bytes]:
        """All rows of all tenants."""
        table = {"history": "messages", "short_term": "states"}[contract]
        sql = f"SELECT * FROM {table} ORDER BY 1, 2, 3"  # noqa: S608 - one of two names
        rows = await self.engine.run(lambda db: db.execute(sql).fetchall())
        return [repr(row) for row in rows]
