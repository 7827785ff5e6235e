"""A connected engine of a ``State``, and its health."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable

from holdfast.values.backlog import PoolUse
from holdfast.values.errors import HoldfastError
from holdfast.wiring.health import Condition, EngineHealth


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectedEngine:
    """One connected engine: its name, the attributes it serves, and how to ping and close it."""

    engine: str
    serves: tuple[str, ...]
    durability: str
    ping: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    version: str = ""
    capabilities: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    pool: Callable[[], PoolUse] | None = None
    """Returns how its connections are used; ``None`` if it has no pool."""

    watch: Callable[[Callable[[], None]], None] | None = None
    """Calls a function at each round trip to the server from now on; ``None`` if it cannot."""

    def serving(self, *attributes: str) -> ConnectedEngine:
        """Return the same engine, which serves these attributes instead."""
        return dataclasses.replace(self, serves=attributes)

    async def probe(self) -> EngineHealth:
        """Ping the engine. Returns whether it is up, and how long the ping took."""
        start = time.perf_counter()
        status: Condition = "ok"
        problem = ""
        try:
            await self.ping()
        except HoldfastError as error:
            status, problem = "down", str(error)
        return self._health(status, time.perf_counter() - start, problem)

    def _health(self, status: Condition, latency_seconds: float, detail: str) -> EngineHealth:
        return EngineHealth(
            self.engine,
            status,
            serves=self.serves,
            durability=self.durability,
            latency_seconds=latency_seconds,
            detail=detail or self.version,
            version=self.version,
            capabilities=self.capabilities,
            warnings=self.warnings,
        )
