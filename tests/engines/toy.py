"""Somebody else's engine: one contract, on an SQLite file; and the same engine, broken.

It stands for an engine outside the project: it uses the values, the SPI, the contract and
``holdfast.testing`` only.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
import tempfile
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.contracts.short_term import States
from holdfast.spi.states import StateStorage
from holdfast.testing import Harness
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import VersionConflictError
from holdfast.values.states import StateSnapshot, StateWrite

SCHEMA = """
CREATE TABLE IF NOT EXISTS versions (tenant TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS states (
    tenant TEXT, session TEXT, body TEXT, version INTEGER, ttl REAL, expires_at TEXT,
    PRIMARY KEY (tenant, session)
);
"""


class ToyStates(StateStorage):
    """A row for each session; a write is one transaction."""

    def __init__(self, engine: ToyHarness, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        row = self._row(session)
        if row is None:
            return StateSnapshot({})
        body, version, _, expires_at = row
        state = {
            key: decode_json(text)
            for key, text in decode_json(body).items()
            if keys is None or key in keys
        }
        return StateSnapshot(state, version, expires_at)

    async def write(self, write: StateWrite, expected: int | None) -> None:
        row = self._row(write.session)
        actual = row[1] if row else 0
        if expected not in (None, actual):
            raise VersionConflictError(
                "state", write.session, expected=expected or 0, actual=actual
            )
        kept = decode_json(row[0]) if row and not write.fresh else {}
        values = {key: text for key, text in kept.items() if key not in write.dropped}
        window = row[2] if row and write.ttl_seconds is None else write.ttl_seconds
        ends = (
            None if window is None else (self._engine.now + timedelta(seconds=window)).isoformat()
        )
        body = encode_json(values | write.values)
        with self._engine.database as database:
            [version] = database.execute(
                "INSERT INTO versions VALUES (?, 1) "
                "ON CONFLICT (tenant) DO UPDATE SET last = last + 1 RETURNING last",
                (self._tenant,),
            ).fetchone()
            database.execute(
                "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)",
                (self._tenant, write.session, body, version, window, ends),
            )

    async def clear(self, session: str) -> None:
        with self._engine.database as database:
            where = (self._tenant, session)
            database.execute("DELETE FROM states WHERE tenant = ? AND session = ?", where)

    def _row(self, session: str) -> tuple[str, int, float | None, datetime | None] | None:
        row = self._engine.database.execute(
            "SELECT body, version, ttl, expires_at FROM states WHERE tenant = ? AND session = ?",
            (self._tenant, session),
        ).fetchone()
        expires_at = datetime.fromisoformat(row[3]) if row and row[3] else None
        if row is None or (expires_at and expires_at <= self._engine.now):
            return None
        return row[0], row[1], row[2], expires_at


class ToyHarness(Harness):
    """The toy engine in a folder of its own."""

    name = "toy"
    contracts = frozenset({"short_term"})
    storage: type[ToyStates] = ToyStates

    async def open(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.folder = tempfile.TemporaryDirectory()
        self._connect()

    def _connect(self) -> None:
        self.database = sqlite3.connect(Path(self.folder.name) / "toy.db")
        self.database.executescript(SCHEMA)

    async def close(self) -> None:
        self.database.close()
        self.folder.cleanup()

    async def reopen(self) -> None:
        self.database.close()
        self._connect()

    async def elapse(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        assert contract in self.contracts
        assert not options
        return States(self.storage(self, tenant))

    async def raw(self, contract: str) -> list[str | bytes]:
        assert contract in self.contracts
        return [repr(row) for row in self.database.execute("SELECT * FROM states ORDER BY 1, 2")]


class BrokenStates(ToyStates):
    """Merges by reading and writing, forgets what was to be deleted, and mixes up the tenants."""

    def __init__(self, engine: ToyHarness, tenant: str) -> None:
        super().__init__(engine, tenant)
        self._tenant = "everyone"

    async def write(self, write: StateWrite, expected: int | None) -> None:
        if not write.fresh:
            row = self._row(write.session)
            await asyncio.sleep(0)
            values = {**(decode_json(row[0]) if row else {}), **write.values}
            write = dataclasses.replace(write, values=values, dropped=(), fresh=True)
        await super().write(write, expected)


class BrokenToyHarness(ToyHarness):
    """The toy engine with a broken store."""

    name = "broken-toy"
    storage = BrokenStates
