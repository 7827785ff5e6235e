"""The target of the entry point ``age`` in the group ``holdfast.engines``."""

from __future__ import annotations

from holdfast.spi.engine import Engine, EngineOptions
from holdfast_age.engine import Age
from holdfast_age.graph import AgeGraph


class AgeEngine(Engine):
    """A Postgres with AGE, which stores the graph.

    ::

        state = holdfast.open("postgresql://app@db/main", graph="age")
    """

    name = Age.name
    durability = "committed: on disk when a write returns"
    contracts = frozenset({"graph"})

    def __init__(self, age: Age) -> None:
        self._age = age
        self.version = f"AGE {age.capabilities.age}"

    def storage(self, contract: str, tenant: str) -> AgeGraph:  # noqa: ARG002 - there is one
        """Return the graph of a tenant."""
        return AgeGraph(self._age, tenant=tenant)

    async def ping(self) -> None:
        """Return if the server answers; else raise."""
        await self._age.ping()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._age.aclose()


async def open_engine(url: str, options: EngineOptions) -> AgeEngine:
    """Connect to a Postgres that has AGE, by ``postgresql://`` or ``age://``.

    ``NotSupportedError`` names what the server lacks. ::

        engine = await open_engine("age://app@db/main", EngineOptions())
    """
    address = url.replace("age://", "postgresql://", 1) if url.startswith("age://") else url
    age = await Age.open(
        address,
        command_timeout_seconds=options.command_timeout_seconds,
        allow_unsafe=options.allow_unsafe,
    )
    return AgeEngine(age)
