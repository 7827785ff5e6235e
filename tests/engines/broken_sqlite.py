"""The engine of tests/engines/plugin with a broken store, for the suite to find out."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from holdfast.contracts.short_term import States
from holdfast.spi.states import StateWrite
from holdfast.values.codec import decode_json
from tests.engines.plugin.holdfast_sqlite import SqliteEngine, SqliteHarness, SqliteStates


class BrokenStates(SqliteStates):
    """Merges by reading and writing, forgets what was to be deleted, and mixes up the tenants."""

    def __init__(self, engine: SqliteEngine) -> None:
        super().__init__(engine, "everyone")

    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace a state, also where it was to be patched."""
        if not write.fresh:
            row = await self._engine.run(self._row, write.session)
            await asyncio.sleep(0)
            values = {**(decode_json(row[0]) if row else {}), **write.values}
            write = dataclasses.replace(write, values=values, dropped=(), fresh=True)
        return await super().write(write, expected)


class BrokenHarness(SqliteHarness):
    """The engine with the broken store."""

    name = "broken-sqlite"
    contracts = frozenset({"short_term"})

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """The broken store, whatever the tenant."""
        del contract, tenant
        return States(BrokenStates(self.engine), **options)
