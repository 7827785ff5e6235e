"""An erasure reaches a graph that another engine stores."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

import holdfast
from holdfast import Entity, Relationship
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.erasure.graph_names import GraphNames
from holdfast.spi.engine import GROUP, Engine, EngineOptions
from holdfast.spi.erasure import ErasureScope
from holdfast.spi.graph_draft import EntityDraft
from holdfast.wiring import plugins
from tests.engines.age import AgeHarness
from tests.engines.postgres_database import migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANY = 600


class Beside(Engine):
    """A graph in the memory of this process."""

    name = "beside"
    version = "1"
    durability = "none"
    contracts = frozenset({"graph"})
    engine = InMemory()

    def storage(self, contract: str, tenant: str) -> Any:
        """The graph of a tenant."""
        assert contract == "graph"
        return InMemoryGraph(self.engine, tenant=tenant)

    async def ping(self) -> None:
        """Always there."""

    async def aclose(self) -> None:
        """Nothing to close."""


async def open_engine(url: str, options: EngineOptions) -> Beside:
    """What the entry point names."""
    del url, options
    return Beside()


async def test_entities_of_a_graph_beside_postgres_are_erased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("age", f"{__name__}:open_engine", GROUP)
    monkeypatch.setattr(plugins, "plugins", lambda: {"age": point})
    async with migrated_database() as url, holdfast.open(url, graph="age") as state:
        assert state.engines["graph"] == "beside"
        other = state.for_tenant("other")
        for view in (state.for_owner("ana"), state.for_owner("ben"), state, other):
            await view.graph.add_entities([Entity("person", {}, f"e{at}") for at in range(MANY)])
        report = await state.erase(subject="ana")
        assert report.counts == {"entities": MANY}
        assert await state.for_owner("ana").graph.list_entities() == []
        about = [Entity("person", {}, "about", "ana"), Entity("person", {}, "x")]
        await state.graph.add_entities(about)
        await state.graph.add_relationships([Relationship("x", "e1", "is", {}, "r1", "ana")])
        report = await state.erase(subject="ana")
        assert report.counts == {"entities": 1, "relationships": 1}
        assert await state.graph.delete_entity("x")
        assert (await state.erase(subject="ana", dry_run=True)).counts == {}
        assert len(await state.for_owner("ben").graph.list_entities(limit=1000)) == MANY
        assert (await state.erase(tenant=state.tenant)).counts == {"entities": 2 * MANY}
        assert await state.graph.list_entities() == []
        assert len(await other.graph.list_entities(limit=1000)) == MANY


async def test_entities_in_age_are_found_by_their_owner() -> None:
    harness = AgeHarness()
    await harness.open()
    graph = harness.store("graph")
    ids = ["holdfast.owner:3:ana:e1", "holdfast.owner:3:ben:e1", "e1"]
    await graph._storage.put_entities([EntityDraft(one, "person", "{}", ["e1"]) for one in ids])
    names = GraphNames(graph._storage)
    assert await names.find(ErasureScope("subject", "ana"), None) == [(ids[0],)]
    assert sorted(await names.find(ErasureScope("tenant", "default"), None)) == sorted(
        (one,) for one in ids
    )
    assert await names.find(ErasureScope("tenant", "default"), 1) == [(min(ids),)]
    assert await names.find(ErasureScope("session", "s1"), None) == []
    await harness.close()
