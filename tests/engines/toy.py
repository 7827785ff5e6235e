"""Somebody else's engine: one contract, on an SQLite file; and the same engine, broken.

It stands for an engine outside the project: it uses the kernel and ``holdfast.testing`` only.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.kernel.core.checks import check_id, check_optional_count, check_seconds
from holdfast.kernel.core.codec import decode_json, encode_fields, encode_json
from holdfast.kernel.core.errors import InvalidInputError, VersionConflictError
from holdfast.kernel.storage.short_term import ShortTerm, StateSnapshot, check_keys
from holdfast.testing import Harness

SCHEMA = """
CREATE TABLE IF NOT EXISTS versions (tenant TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS states (
    tenant TEXT, session TEXT, body TEXT, version INTEGER, ttl REAL, expires_at TEXT,
    PRIMARY KEY (tenant, session)
);
"""


class ToyShortTerm(ShortTerm):
    """A row for each session; a write is one transaction."""

    def __init__(self, engine: ToyHarness, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        return (await self.snapshot(session_id, keys=keys)).state

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        wanted = None if keys is None else check_keys("keys", keys)
        row = self._row(check_id("session_id", session_id))
        if row is None:
            return StateSnapshot({})
        body, version, _, expires_at = row
        state = {
            key: decode_json(text)
            for key, text in decode_json(body).items()
            if wanted is None or key in wanted
        }
        return StateSnapshot(state, version, expires_at)

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        check_id("session_id", session_id)
        self._write(session_id, encode_fields(state, field="state"), expected_version, ttl_seconds)

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        check_id("session_id", session_id)
        values, gone = encode_fields(patch, field="patch"), check_keys("delete_keys", delete_keys)
        if not gone.isdisjoint(values):
            raise InvalidInputError("delete_keys", "names a key of the patch")
        row = self._row(session_id)
        kept = decode_json(row[0]) if row else {}
        values = {key: text for key, text in kept.items() if key not in gone} | values
        self._write(session_id, values, expected_version, ttl_seconds)

    async def clear(self, session_id: str) -> None:
        check_id("session_id", session_id)
        with self._engine.database as database:
            where = (self._tenant, session_id)
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

    def _write(
        self, session: str, values: dict[str, str], expected: int | None, ttl: float | None
    ) -> None:
        check_optional_count("expected_version", expected)
        window = None if ttl is None else check_seconds("ttl_seconds", ttl)
        row = self._row(session)
        actual = row[1] if row else 0
        if expected not in (None, actual):
            raise VersionConflictError("state", session, expected=expected or 0, actual=actual)
        window = row[2] if row and window is None else window
        ends = (
            None if window is None else (self._engine.now + timedelta(seconds=window)).isoformat()
        )
        with self._engine.database as database:
            [version] = database.execute(
                "INSERT INTO versions VALUES (?, 1) "
                "ON CONFLICT (tenant) DO UPDATE SET last = last + 1 RETURNING last",
                (self._tenant,),
            ).fetchone()
            database.execute(
                "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)",
                (self._tenant, session, encode_json(values), version, window, ends),
            )


class ToyHarness(Harness):
    """The toy engine in a folder of its own."""

    name = "toy"
    contracts = frozenset({"short_term"})
    store_class: type[ToyShortTerm] = ToyShortTerm

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
        return self.store_class(self, tenant)

    async def raw(self, contract: str) -> list[str | bytes]:
        assert contract in self.contracts
        return [repr(row) for row in self.database.execute("SELECT * FROM states ORDER BY 1, 2")]


class BrokenShortTerm(ToyShortTerm):
    """Merges by reading and writing, forgets what was to be deleted, and mixes up the tenants."""

    def __init__(self, engine: ToyHarness, tenant: str) -> None:
        super().__init__(engine, tenant)
        self._tenant = "everyone"

    async def update_state(self, session_id: str, patch: dict[str, Any], **how: Any) -> None:
        encode_fields(patch, field="patch")
        check_keys("delete_keys", how.pop("delete_keys", ()))
        state = await self.get_state(session_id)
        await asyncio.sleep(0)
        await self.set_state(session_id, state | patch, **how)


class BrokenToyHarness(ToyHarness):
    """The toy engine with a broken store."""

    name = "broken-toy"
    store_class = BrokenShortTerm
