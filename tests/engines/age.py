"""The harness of Apache AGE."""

from __future__ import annotations

from functools import cache
from typing import Any

from holdfast.contracts.cypher_graph import CypherGraph
from holdfast.testing.harness import Harness
from holdfast.values.ids import new_ref
from holdfast_age.engine import Age, graph_name
from holdfast_age.graph import AgeGraph
from tests.engines.age_server import AgeServer


@cache
def server() -> AgeServer:
    """One server for all tests of a run, started when it is first needed."""
    return AgeServer()


async def connect(**options: Any) -> Age:
    """The one connection that the server serves at a time."""
    return await Age.open(server().url, max_connections=1, allow_unsafe=True, **options)


class AgeHarness(Harness):
    """AGE 1.7 over the Postgres wire, one connection at a time."""

    name = "age"
    contracts = frozenset({"graph"})

    async def open(self) -> None:
        """Tenants of this test's own; their graphs are made when they are first used."""
        self._prefix = f"{new_ref()}~"
        self._tenants: set[str] = set()
        self.age = await connect(auto_create=True)

    async def close(self) -> None:
        """Close the pool."""
        await self.age.aclose()

    async def reopen(self) -> None:
        """A new pool on the same server."""
        await self.close()
        self.age = await connect()

    async def elapse(self, seconds: float) -> None:
        """Nothing in a graph depends on the time."""

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A graph on the shared pool."""
        assert contract == "graph"
        self._tenants.add(self._prefix + tenant)
        return CypherGraph(AgeGraph(self.age, tenant=self._prefix + tenant, **options))

    async def raw(self, contract: str) -> list[str | bytes]:  # noqa: ARG002 - there is one
        """All rows of this test's graphs, read around the store."""
        names = {graph_name(tenant) for tenant in self._tenants}
        found: list[str | bytes] = []
        async with self.age.postgres.connection(writes=False) as connection:
            rows = await connection.fetch("SELECT name::text FROM ag_catalog.ag_graph ORDER BY 1")
            for [name] in rows:
                for table in ("_ag_label_vertex", "_ag_label_edge") if name in names else ():
                    found += await connection.fetchval(
                        "SELECT coalesce(array_agg(md5(t::text) ORDER BY t.id), '{}') "  # noqa: S608 - names of the catalog
                        f"FROM {name}.{table} t"
                    )
        return found
