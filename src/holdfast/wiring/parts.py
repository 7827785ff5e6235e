"""The engines of an opened ``State``, each with what it serves."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable

from holdfast.kernel.core.errors import HoldfastError
from holdfast.wiring.health import Condition, EngineHealth


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One connected engine: what it is, what it serves, how to ask it and how to let it go."""

    engine: str
    serves: tuple[str, ...]
    durability: str
    ping: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    version: str = ""
    capabilities: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def serving(self, *attributes: str) -> Part:
        """The same engine for other attributes."""
        return dataclasses.replace(self, serves=attributes)

    async def probe(self) -> EngineHealth:
        """Whether it answers now, and how fast; or how long it took to say that it does not."""
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
