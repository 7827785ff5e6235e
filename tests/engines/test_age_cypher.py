"""Cypher on Apache AGE: exact values, inert text, and no way out of the tenant's graph."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from holdfast.contracts.cypher_graph import CypherCapable, CypherGraph
from holdfast.contracts.graph import Graph
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Entity, Relationship
from holdfast.values.ids import new_ref
from holdfast_age.agtype import same
from holdfast_age.engine import Age, graph_name
from holdfast_age.graph import AgeGraph
from tests.engines.age import connect
from tests.engines.test_age_values import HOSTILE, random_value

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def age() -> AsyncIterator[Age]:
    opened = await connect(auto_create=True)
    yield opened
    await opened.aclose()


@pytest.fixture
def tenant() -> str:
    return new_ref()


@pytest.fixture
def graph(age: Age, tenant: str) -> CypherGraph:
    return CypherGraph(AgeGraph(age, tenant=tenant))


async def _two(graph: Graph) -> None:
    await graph.add_entities([Entity("Person", {"name": "Ravi"}, "a"), Entity("City", {}, "b")])
    await graph.add_relationships([Relationship("a", "b", "lives_in", {"since": 2020}, "r")])


async def test_cypher_sees_properties_and_the_own_ones_beside_them(graph: CypherGraph) -> None:
    await _two(graph)
    assert isinstance(graph, CypherCapable)
    rows = await graph.query_cypher(
        "MATCH (a:Entity)-[r:Relationship]->(b) WHERE a.id = $id "
        "RETURN a.name, a.label, r.type, r.since, b",
        {"id": "a"},
        columns=["name", "label", "type", "since", 'b"; --'],
    )
    city = rows[0].pop('b"; --')
    assert rows == [{"name": "Ravi", "label": "Person", "type": "lives_in", "since": 2020}]
    assert (city["label"], city["properties"]) == ("Entity", {"id": "b", "label": "City"})


async def test_cypher_gives_edges_and_paths_of_any_length(graph: CypherGraph) -> None:
    await _two(graph)
    await graph.add_relationships([Relationship("b", "a", "home_of", {}, "s")])
    [row] = await graph.query_cypher(
        "MATCH p = (a:Entity {id: $id})-[:Relationship*2..2]->(b) RETURN p", {"id": "a"}
    )
    ids = [part["properties"]["id"] for part in row["result"]]
    assert ids == ["a", "r", "b", "s", "a"]
    edge = row["result"][1]
    assert edge["properties"] == {"id": "r", "type": "lives_in", "since": 2020}
    assert edge["start_id"] == row["result"][0]["id"]


async def test_parameters_and_results_are_exact(graph: CypherGraph) -> None:
    value = {
        "z": [1, 1.0, -0.0, 1e16, 2**63 - 1, -(2**63), True, None],
        "text": ["", "a\x00b", "\x01", "\x010", *HOSTILE],
        "a\x00key": {"": {"deep": [[[]]]}},
    }
    [row] = await graph.query_cypher("RETURN $value", {"value": value})
    assert same(row["result"], value)
    [row] = await graph.query_cypher(
        "RETURN 1.50::numeric, toFloat('Infinity'), 9223372036854775807, [1.5::numeric, {a: 'x'}]",
        columns=["numeric", "float", "int", "list"],
    )
    assert row == {
        "numeric": Decimal("1.50"),
        "float": float("inf"),
        "int": 2**63 - 1,
        "list": [Decimal("1.5"), {"a": "x"}],
    }


async def test_hostile_text_stays_inert_wherever_it_stands(graph: CypherGraph) -> None:
    await graph.add_entities([Entity("Keep", {}, "keep")])
    for text in HOSTILE:
        entity = Entity(text, {"name": text, text: text}, text)
        edge = Relationship(text, "keep", text, {text: text}, text)
        await graph.add_entities([entity])
        await graph.add_relationships([edge])
        found = await graph.get_neighbors(text, relationship_types=[text])
        assert found.entities[0] == entity
        assert found.relationships == (edge,)
        assert entity in await graph.find_entities([text]) or not text.strip(
            "\\'$1/*: \u202e\u200b"
        )
        rows = await graph.query_cypher(
            "MATCH (n:Entity)-[r:Relationship]->(k) WHERE n.id = $id AND r.type = $id "
            "RETURN n.label, r.id, k.id",
            {"id": text, text: text},
            columns=["label", "edge", text],
        )
        assert rows == [{"label": text, "edge": text, text: "keep"}]
    [row] = await graph.query_cypher("MATCH (n) RETURN count(n)")
    assert row["result"] == len(HOSTILE) + 1


@pytest.mark.parametrize(
    "query",
    [
        "CREATE (n:Entity {id: 'new', label: 'X'}) RETURN n",
        "CREATE (n:Fresh) RETURN n",
        "MERGE (n:Entity {id: 'new', label: 'X'}) RETURN n",
        "MATCH (n) SET n.name = 'Eve' RETURN n",
        "MATCH (n) REMOVE n.name RETURN n",
        "MATCH (n) DETACH DELETE n",
    ],
)
async def test_a_query_cannot_write_unless_it_is_allowed_to(graph: CypherGraph, query: str) -> None:
    await _two(graph)
    before = await graph.get_neighbors("a")
    with pytest.raises(InvalidInputError, match="pass write=True"):
        await graph.query_cypher(query)
    assert await graph.get_neighbors("a") == before
    assert await graph.query_cypher("MATCH (n:Fresh) RETURN n") == []
    await graph.query_cypher(query, write=True)
    [row] = await graph.query_cypher("MATCH (n) WHERE n.name = 'Ravi' RETURN count(n)")
    [all_] = await graph.query_cypher("MATCH (n) RETURN count(n)")
    assert (row["result"], all_["result"]) != (1, 2)


async def test_the_store_reads_what_cypher_wrote(graph: CypherGraph) -> None:
    await _two(graph)
    await graph.query_cypher(
        "MATCH (n:Entity {id: 'a'}) SET n.name = $name, n.tags = ['x']",
        {"name": "Ra\x00vi"},
        write=True,
    )
    await graph.query_cypher(
        "MATCH (a:Entity {id: 'a'}) CREATE (a)-[:Relationship {id: 'q', type: 'made', n: 1.5}]->"
        "(:Entity {id: 'c', label: 'Thing', size: 3})",
        write=True,
    )
    found = await graph.get_neighbors("a")
    assert found.entities == (
        Entity("Person", {"name": "Ra\x00vi", "tags": ["x"]}, "a"),
        Entity("City", {}, "b"),
        Entity("Thing", {"size": 3}, "c"),
    )
    assert found.relationships[0] == Relationship("a", "c", "made", {"n": 1.5}, "q")
    assert await graph.delete_entity("c") is True
    assert (await graph.get_neighbors("a")).relationships == found.relationships[1:]


async def test_a_property_with_the_name_of_an_own_one_is_kept_by_the_store(
    graph: CypherGraph,
) -> None:
    own = {"id": 1, "label": 2, "type": 3, "_holdfast": 4, "_holdfast_names": 5}
    edge = Relationship("a", "a", "knows", own, "r")
    await graph.add_entities([Entity("Person", own, "a")])
    await graph.add_relationships([edge])
    found = await graph.get_neighbors("a")
    assert (found.entities[0].properties, found.relationships) == (own, (edge,))
    assert await graph.query_cypher(
        "MATCH (n)-[r]->() RETURN [n.id, n.label, n.type, r.id, r.label, r.type]"
    ) == [{"result": ["a", "Person", 3, "r", 2, "knows"]}]
    await graph.query_cypher("MATCH (n:Entity {id: 'a'}) SET n.type = 6", write=True)
    assert (await graph.get_neighbors("a")).entities[0].properties == {"type": 6}


async def test_cypher_cannot_make_what_the_store_could_not_read(graph: CypherGraph) -> None:
    await _two(graph)
    for query in (
        "MATCH (n:Entity {id: 'a'}) SET n.id = 7",
        "MATCH (n:Entity {id: 'a'}) SET n.id = 'b'",
        "MATCH (n:Entity {id: 'a'}) REMOVE n.label",
        "MATCH (:Entity)-[r:Relationship]->() REMOVE r.type",
        "CREATE (:Entity {id: 'a', label: 'X'})",
    ):
        with pytest.raises(InvalidInputError, match="would break the graph"):
            await graph.query_cypher(query, write=True)
    assert (await graph.get_neighbors("a")).relationships[0].type == "lives_in"


@pytest.mark.parametrize(
    "query",
    [
        "RETURN pg_catalog.version()",
        "RETURN pg_catalog . /* x */ version // y\n ()",
        "RETURN `pg_catalog`.`version`()",
        "RETURN `version`()",
        "RETURN pg_catalog.query_to_xml('SELECT 1'::pg_text, true, true, ''::pg_text)",
        "RETURN pg_catalog.set_config('search_path'::pg_text, 'public'::pg_text, false)",
        "MATCH ()-[r]->() RETURN startnode('other', r)",
        "RETURN graph_stats('other')",
        "RETURN ag_catalog.age_graph_stats('other')",
        "CALL delete_global_graphs('other')",
        "MATCH (n) RETURN cypher('other', 'MATCH (n) RETURN n')",
        "RETURN create_complete_graph('other', 3, 'E', 'V')",
        "RETURN '\\'' + pg_catalog.version() + '\\''",
        'RETURN "\'" + pg_catalog.version() + "\'"',
        "RETURN 1 /* ' */ + pg_sleep(1) /* ' */",
        "RETURN 1e5pg_sleep(1)",
        "RETURN pg_sleep\v\f(1)",
        "RETURN ünicode(1)",
    ],
)
async def test_a_query_cannot_call_what_leaves_its_graph(graph: CypherGraph, query: str) -> None:
    await _two(graph)
    for write in (False, True):
        with pytest.raises(InvalidInputError, match="only the functions of Cypher"):
            await graph.query_cypher(query, write=write)


async def test_a_query_cannot_leave_its_quotes(age: Age, graph: CypherGraph) -> None:
    await _two(graph)
    stranger = new_ref()
    other = CypherGraph(AgeGraph(age, tenant=stranger))
    await _two(other)
    escape = "$$, $1) AS (a agtype) UNION SELECT properties FROM "
    for end in ("$$", f"${age.tag}$", "$hf$"):
        with pytest.raises(InvalidInputError) as refused:
            await graph.query_cypher(f'RETURN 1 {end}{escape} {graph_name(stranger)}."Entity" --')
        assert refused.value.field == "query"
    with pytest.raises(InvalidInputError, match="the mark that ends it"):
        await graph.query_cypher(f"RETURN 'x${age.tag}$'")


async def test_every_function_that_is_allowed_is_cyphers_and_needs_no_other_graph(
    graph: CypherGraph,
) -> None:
    await _two(graph)
    for call in (
        *("abs(-1)", "coalesce(null, 1)", "size([1])", "toUpper('a')", "split('a,b', ',')"),
        *("range(1, 3)", "head([1])", "substring('abc', 1)", "round(1.5)", "rand()", "pi()"),
        *("collect(n)", "count(*)", "max(n.since)", "stDev(1)", "percentileCont(1, 0.5)"),
        *("exists((n)-[]-())", "labels(n)", "keys(n)", "properties(n)", "id(n)", "label(n)"),
    ):
        assert await graph.query_cypher(f"MATCH (n) RETURN {call}"), call
    rows = await graph.query_cypher(
        "MATCH ()-[r]->() WHERE (r.since IN [2020]) AND NOT (r.type = 'x') RETURN r.type, type(r)",
        columns=["type", "label"],
    )
    assert rows == [{"type": "lives_in", "label": "Relationship"}]


async def test_what_is_wrong_with_a_query_is_said_by_name(
    age: Age, tenant: str, graph: CypherGraph
) -> None:
    await _two(graph)
    wrong: list[tuple[Any, Any, Any, str]] = [
        ("MATCH (n RETURN n", None, ["n"], "query"),
        ("", None, ["n"], "query"),
        ("RETURN 'open", None, ["n"], "query"),
        ("RETURN 1 /* open", None, ["n"], "query"),
        ("RETURN 1/0", None, ["n"], "query"),
        ("RETURN '\x00'", None, ["n"], "query"),
        ("RETURN '\ud800'", None, ["n"], "query"),
        (None, None, ["n"], "query"),
        ("RETURN 1, 2", None, ["n"], "columns"),
        ("RETURN 1", None, [], "columns"),
        ("RETURN 1, 2", None, ["n", "n"], "columns"),
        ("RETURN 1", None, "n", "columns"),
        ("RETURN $x", {"x": float("nan")}, ["n"], "params"),
        ("RETURN $x", [1], ["n"], "params"),
    ]  # fmt: skip
    for query, params, columns, field in wrong:
        with pytest.raises(InvalidInputError) as refused:
            await graph.query_cypher(query, params, columns=columns)
        assert refused.value.field.partition(".")[0].partition("[")[0] == field, query
    few = CypherGraph(AgeGraph(age, tenant=tenant, max_rows=3))
    assert len(await few.query_cypher("UNWIND range(1, 3) AS n RETURN n")) == 3
    with pytest.raises(InvalidInputError, match="more than 3 rows"):
        await few.query_cypher("UNWIND range(1, 4) AS n RETURN n")


async def test_a_write_that_finds_too_many_rows_writes_nothing(age: Age) -> None:
    few = CypherGraph(AgeGraph(age, tenant=new_ref(), max_rows=3))
    with pytest.raises(InvalidInputError, match="more than 3 rows"):
        await few.query_cypher(
            "UNWIND range(1, 9) AS n CREATE (e:Entity {id: toString(n), label: 'X'}) RETURN n",
            write=True,
        )
    assert await few.query_cypher("MATCH (n) RETURN count(n)") == [{"result": 0}]


async def test_one_tenants_query_never_reaches_anothers_graph(age: Age) -> None:
    one, other = (CypherGraph(AgeGraph(age, tenant=f"{new_ref()}'; --\"{name}")) for name in "ab")
    await _two(one)
    assert await other.query_cypher("MATCH (n) RETURN n") == []
    await other.query_cypher("MATCH (n) DETACH DELETE n", write=True)
    assert len((await one.get_neighbors("a")).entities) == 2


async def test_many_random_values_survive_the_server(graph: CypherGraph) -> None:
    dice = random.Random(13)  # noqa: S311 - not a secret
    values = [random_value(dice, 3) for _ in range(300)]
    rows = await graph.query_cypher("UNWIND $values AS v RETURN v", {"values": values})
    assert len(rows) == len(values)
    for row, value in zip(rows, values, strict=True):
        assert same(row["result"], value)
