"""The graph on Apache AGE: its graphs and their rights, and answers like everyone's."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.contracts.cypher_graph import CypherGraph
from holdfast.contracts.graph import Graph, KnowledgeGraph
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.queries import load
from holdfast.values.errors import ConfigError, NotSupportedError, SchemaError
from holdfast.values.graph import Direction, Entity, Relationship
from holdfast.values.ids import new_ref
from holdfast_age.engine import Age, GraphInfo, graph_name, on_graph
from holdfast_age.graph import AgeGraph
from tests.engines.age import connect, server
from tests.engines.age_server import AgeServer
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDNET = Path(__file__).parents[3] / "shared" / "data" / "wn18rr" / "train.txt"
WALKS: list[tuple[int, Direction, slice | None, int]] = [
    (1, "both", None, 1000),
    (2, "both", None, 50),
    (2, "out", slice(1), 1000),
    (3, "in", None, 7),
    (3, "both", slice(2), 30),
]


@pytest_asyncio.fixture(loop_scope="session")
async def age() -> AsyncIterator[Age]:
    opened = await connect(auto_create=True)
    yield opened
    await opened.aclose()


async def _two(graph: Graph) -> None:
    await graph.add_entities([Entity("Person", {"name": "Ravi"}, "a"), Entity("City", {}, "b")])
    await graph.add_relationships([Relationship("a", "b", "lives_in", {"since": 2020}, "r")])


async def test_a_tenant_without_a_graph_is_told_the_command(age: Age) -> None:
    strict = Age(age.postgres)
    graph = CypherGraph(AgeGraph(strict, tenant="acme inc"))
    for call in (
        graph.get_neighbors("a"),
        graph.add_entities([Entity("X", {}, "a")]),
        graph.query_cypher("RETURN 1"),
    ):
        with pytest.raises(SchemaError, match="holdfast graph create 'acme inc'"):
            await call


async def test_a_graph_is_made_once_and_again_by_several_and_repaired(age: Age) -> None:
    tenant = new_ref()
    made = await asyncio.gather(*(age.create(tenant) for _ in range(3)))
    assert sorted(made) == [False, False, True]
    name = graph_name(tenant)
    assert re.fullmatch("[a-z][a-z0-9_]{2,62}", name)
    assert GraphInfo(tenant, name) in await age.graphs()
    async with age.postgres.connection(writes=True) as connection:
        # As an older AGE leaves a graph: without keys and indexes.
        await connection.execute(
            f'ALTER TABLE {name}."Entity" DROP CONSTRAINT "Entity_pkey" CASCADE;'
            f'DROP INDEX {name}."Relationship_start_id_idx", {name}."Relationship_end_id_idx"'
        )
    assert await age.create(tenant) is False
    graph = CypherGraph(AgeGraph(age, tenant=tenant))
    await _two(graph)
    assert await graph.delete_entity("b") is True
    assert (await graph.get_neighbors("a")).relationships == ()


async def test_the_running_role_needs_only_what_it_is_granted(age: Age) -> None:
    tenant = new_ref()
    role = f"app_{new_ref().replace('-', '_').lower()}"
    async with age.postgres.connection(writes=True) as connection:
        await connection.execute(f'CREATE ROLE "{role}"')
    await age.create(tenant, role=role)
    graph, foreign = (
        CypherGraph(AgeGraph(age, tenant=tenant)),
        CypherGraph(AgeGraph(age, tenant=new_ref())),
    )
    await _two(foreign)
    async with age.postgres.connection(writes=True) as connection:
        await connection.execute(f'SET ROLE "{role}"')
    try:
        await _two(graph)
        assert len((await graph.get_neighbors("a")).relationships) == 1
        assert [one.id for one in await graph.find_entities(["ravi"])] == ["a"]
        await graph.query_cypher("MATCH (n:Entity {id: 'a'}) SET n.x = 1", write=True)
        assert await graph.query_cypher("MATCH (n)-[*1..2]-(m) RETURN count(n)")
        assert await graph.delete_entity("a") is True
        for refused in (
            graph.query_cypher("CREATE (:Fresh)", write=True),
            foreign.get_neighbors("a"),
            foreign.query_cypher("MATCH (n) RETURN n"),
        ):
            with pytest.raises(ConfigError, match="permission denied"):
                await refused
    finally:
        async with age.postgres.connection(writes=True) as connection:
            await connection.execute("RESET ROLE")


async def test_a_server_without_age_says_what_it_lacks() -> None:
    async with empty_database() as url:
        with pytest.raises(NotSupportedError, match="not installed on the server"):
            await Age.open(url)
    bare = AgeServer(bare=True)
    try:
        with pytest.raises(NotSupportedError, match="CREATE EXTENSION age"):
            await Age.open(bare.url, max_connections=1, allow_unsafe=True)
    finally:
        bare.stop()


async def test_a_server_that_may_lose_a_commit_is_refused_unless_told() -> None:
    with pytest.raises(ConfigError, match="fsync is off"):
        await Age.open(server().url, max_connections=1)


async def test_every_statement_prepares_and_reads_by_index(age: Age) -> None:
    tenant = new_ref()
    await age.create(tenant)
    async with age.postgres.connection(writes=True) as connection:
        for sql in load("graph", package="holdfast_age").values():
            await connection.prepare(on_graph(sql, graph_name(tenant)))
        await connection.execute(
            "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"
        )
        plans = {}
        for name, nulls in (("walk", 6), ("find_entities", 1), ("delete_entity", 1)):
            sql = on_graph(load("graph", package="holdfast_age")[name], graph_name(tenant))
            await connection.execute(f"PREPARE planned AS {sql}")
            holes = ", ".join(["NULL"] * nulls)
            rows = await connection.fetch(f"EXPLAIN EXECUTE planned ({holes})")
            plans[name] = "\n".join(row[0] for row in rows)
            await connection.execute("DEALLOCATE planned")
        for query in (
            "MATCH (n:Entity {id: 'a'}) RETURN n",
            "MATCH (n:Entity) WHERE n.id = 'a' RETURN n",
        ):
            rows = await connection.fetch(
                f"EXPLAIN SELECT * FROM ag_catalog.cypher('{graph_name(tenant)}', $x${query}$x$) "  # noqa: S608 - names and queries of the test
                "AS (n ag_catalog.agtype)"
            )
            plans[query] = "\n".join(row[0] for row in rows)
            assert "Index Scan using holdfast_entity_id" in plans[query], plans[query]
        await connection.execute("RESET plan_cache_mode; RESET enable_seqscan")
    for index in ("holdfast_entity_id", "Relationship_start_id_idx", "Relationship_end_id_idx"):
        assert index in plans["walk"], plans["walk"]
    assert "Seq Scan on" not in "".join(plans.values()), plans
    assert "holdfast_entity_names" in plans["find_entities"]
    assert "holdfast_entity_id" in plans["delete_entity"]


async def _agree(stores: list[Graph], starts: list[str], types: list[str]) -> None:
    for start in starts:
        for depth, direction, some, most in WALKS:
            answers = [
                await store.get_neighbors(
                    start,
                    depth=depth,
                    direction=direction,
                    relationship_types=None if some is None else types[some],
                    limit=most,
                )
                for store in stores
            ]
            assert answers[0] == answers[1] == answers[2]


@pytest_asyncio.fixture(loop_scope="session")
async def three(age: Age) -> AsyncIterator[list[Graph]]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        async with age.postgres.connection(writes=True) as connection:
            # What an index finds must be what a scan finds.
            await connection.execute("SET enable_seqscan = off")
        yield [
            CypherGraph(AgeGraph(age, tenant=new_ref())),
            KnowledgeGraph(InMemoryGraph(InMemory())),
            KnowledgeGraph(PostgresGraph(engine)),
        ]
        await engine.aclose()


async def test_its_answers_are_those_of_the_other_engines_on_random_graphs(
    three: list[Graph],
) -> None:
    dice = random.Random(11)  # noqa: S311 - not a secret
    names = [f"{dice.choice('aZé0')}{at}" for at in range(60)]
    types = ["knows", "likes", "owns"]
    for turn in range(4):
        entities = [
            Entity("X", {"name": f"N{dice.randrange(9)}", "turn": turn}, one)
            for one in dice.sample(names, 40)
        ]
        edges = [
            Relationship(dice.choice(names), dice.choice(names), dice.choice(types), {}, f"r{at}")
            for at in dice.sample(range(200), 60)
        ]
        gone = dice.sample(names, 3)
        for store in three:
            await store.add_entities([Entity("X", {}, one) for one in names])
            await store.add_entities(entities)
            await store.add_relationships(edges)
            for one in gone:
                await store.delete_entity(one)
        await _agree(three, dice.sample(names, 8), types)
        found = [await store.find_entities(["n1", "N-5", names[0]]) for store in three]
        assert found[0] == found[1] == found[2] != []


@pytest.mark.skipif(
    not WORDNET.exists(), reason="WN18RR is not beside the project (../shared/data)"
)
async def test_its_answers_are_those_of_the_other_engines_on_wordnet(
    three: list[Graph],
) -> None:
    dice = random.Random(12)  # noqa: S311 - not a secret
    every = [line.split("\t") for line in WORDNET.read_text().splitlines()]
    # The neighbourhood of some synsets, so that walks have somewhere to go.
    near = {dice.choice(every)[0] for _ in range(15)}
    for _ in range(2):
        near |= {end for s, _, t in every for end in (s, t) if {s, t} & near}
    edges = [
        Relationship(source, target, kind, {"at": at}, f"{at}")
        for at, (source, kind, target) in enumerate(every)
        if source in near and target in near
    ][:4000]
    names = sorted({end for one in edges for end in (one.source_id, one.target_id)})
    assert len(edges) > 300
    for store in three:
        await store.add_entities([Entity("Synset", {"name": one}, one) for one in names])
        await store.add_relationships(edges)
    kinds = sorted({one.type for one in edges})
    await _agree(three, dice.sample(names, 20), kinds)
