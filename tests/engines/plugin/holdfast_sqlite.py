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
CREATE TABLE IF NOT EXISTS counters (
    tenant TEXT, name TEXT, last INTEGER NOT NULL, PRIMARY KEY (tenant, name)
);
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
FIND = "SELECT agent, run, body FROM messages WHERE tenant = ? AND session = ? AND id = ?"
MINE = "FROM messages WHERE tenant = ? AND session = ? AND agent = ?"
PAGE = f"SELECT body, id, at, seq {MINE} AND seq > ? ORDER BY seq LIMIT ? OFFSET ?"
NEWEST = f"SELECT body, id, at, seq {MINE} ORDER BY seq DESC LIMIT ?"
STATE = "SELECT body, version, ttl, expires FROM states WHERE tenant = ? AND session = ?"
ROW = "RETURNING body, id, at, seq"
ALL = -1


class SqliteEngine(Engine):
    """One file; all calls run in a thread, one after the other."""

    name = "sqlite"
    version = f"SQLite {sqlite3.sqlite_version}"
    durability = "committed: in the file when a write returns"
    contracts = frozenset({"history", "short_term"})

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.executescript(SCHEMA)
        self._turn = asyncio.Lock()
        self.shift = 0.0

    async def run(self, work: Any, *args: Any) -> Any:
        """Run one transaction."""

        def transaction() -> Any:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                found = work(self._database, *args)
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
            return found

        async with self._turn:
            return await asyncio.to_thread(transaction)

    def now(self) -> float:
        """The time, which a test may move."""
        return time.time() + self.shift

    def storage(self, contract: str, tenant: str) -> Any:
        """What stores for a contract."""
        return {"history": SqliteTranscripts, "short_term": SqliteStates}[contract](self, tenant)

    async def ping(self) -> None:
        """Read something."""
        await self.run(lambda database: database.execute("SELECT 1"))

    async def aclose(self) -> None:
        """Close the file."""
        self._database.close()


class SqliteTranscripts(transcripts.Transcripts):
    """A row for each message."""

    def __init__(self, engine: SqliteEngine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries, all or none."""
        await self._engine.run(self._append, entries)

    def _append(self, database: sqlite3.Connection, entries: Sequence[LogEntry]) -> None:
        for one in entries:
            row = (one.agent, one.run, one.body)
            where = (self._tenant, one.session)
            there = database.execute(FIND, (*where, one.id)).fetchone()
            if there not in (None, row):
                raise transcripts.another_body(one.session, one.id)
            if there is None:
                [seq] = database.execute(NUMBER, (self._tenant, f"m{one.session}")).fetchone()
                values = (*where, one.id, seq, *row, one.occurred_at.isoformat())
                database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages, ascending."""
        mine = (self._tenant, key.session, key.agent)
        if page.last is not None:
            rows = (await self._rows(NEWEST, *mine, page.last))[::-1]
        else:
            limit = ALL if page.limit is None else page.limit
            rows = await self._rows(PAGE, *mine, page.after_seq or 0, limit, page.offset)
        return [_row(row) for row in rows]

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove and return the newest message."""
        mine = (self._tenant, key.session, key.agent)
        rows = await self._rows(
            f"DELETE {MINE} AND seq = (SELECT max(seq) {MINE}) {ROW}", *mine * 2
        )
        return _row(rows[0]) if rows else None

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the newest messages, all or none."""
        last: int = await self._engine.run(self._replace_tail, key, tail)
        return last

    def _replace_tail(self, database: sqlite3.Connection, key: TranscriptKey, tail: Tail) -> int:
        mine, new = (self._tenant, key.session, key.agent), [one.id for one in tail.entries]
        last = f"SELECT coalesce(max(seq), 0) {MINE}"
        [actual] = database.execute(last, mine).fetchone()
        after = f"{MINE} AND seq > ?"
        found = f"SELECT id, run, body {after} ORDER BY seq"
        there = database.execute(found, (*mine, tail.after_seq)).fetchall()
        if actual != tail.expected_last_seq:
            if there == [(one.id, one.run, one.body) for one in tail.entries]:
                return int(actual)
            versions = {"expected": tail.expected_last_seq, "actual": actual}
            raise transcripts.VersionConflictError("transcript", key.session, **versions)
        database.execute(f"DELETE {after}", (*mine, tail.after_seq))
        for id_ in new:
            if database.execute(FIND, (self._tenant, key.session, id_)).fetchone():
                raise transcripts.another_body(key.session, id_)
        self._append(database, tail.entries)
        return int(database.execute(last, mine).fetchone()[0])

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


def _row(row: Any) -> MessageRow:
    body, name, at, seq = row
    return body, name, datetime.fromisoformat(at), seq


class SqliteStates(states.StateStorage):
    """A row for each session."""

    def __init__(self, engine: SqliteEngine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state, or some keys of it."""
        row = await self._engine.run(self._row, session)
        if row is None:
            return StateSnapshot({})
        values = {
            key: states.decode_json(text)
            for key, text in states.decode_json(row[0]).items()
            if keys is None or key in keys
        }
        ends = None if row[3] is None else datetime.fromtimestamp(row[3], UTC)
        return StateSnapshot(values, row[1], ends)

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of sessions. A file has no round trips to save."""
        return [await self.read(session, None) for session in sessions]

    async def write(self, write: states.StateWrite, expected: int | None) -> int:
        """Replace or patch a state."""
        version: int = await self._engine.run(self._write, write, expected)
        return version

    def _write(
        self, database: sqlite3.Connection, write: states.StateWrite, expected: int | None
    ) -> int:
        row = self._row(database, write.session)
        if expected not in (None, actual := row[1] if row else 0):
            versions = {"expected": expected or 0, "actual": actual}
            raise states.VersionConflictError("state", write.session, **versions)
        kept = states.decode_json(row[0]) if row and not write.fresh else {}
        values = {key: text for key, text in kept.items() if key not in write.dropped}
        ttl = row[2] if row and write.ttl_seconds is None else write.ttl_seconds
        [version] = database.execute(NUMBER, (self._tenant, "versions")).fetchone()
        body = states.encode_json(values | write.values)
        ends = None if ttl is None else self._engine.now() + ttl
        row = (self._tenant, write.session, body, version, ttl, ends)
        database.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)", row)
        return int(version)

    async def clear(self, session: str) -> None:
        """Delete a state."""
        sql, where = "DELETE FROM states WHERE tenant = ? AND session = ?", (self._tenant, session)
        await self._engine.run(lambda database: database.execute(sql, where))

    def _row(self, database: sqlite3.Connection, session: str) -> Any:
        row = database.execute(STATE, (self._tenant, session)).fetchone()
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
        rows = await self.engine.run(lambda database: database.execute(sql).fetchall())
        return [repr(row) for row in rows]
