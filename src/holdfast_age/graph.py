"""The knowledge graph in Apache AGE: one vertex label, one edge label, and Cypher on top.

A user's labels and types are properties; no text of a user is ever part of a statement. The
contract's calls are SQL on the tables of AGE's labels, one statement each: AGE's own patterns of
variable length enumerate all paths, and a small cyclic graph has too many of them. Cypher sees the
same rows: the properties as they are, with ``id``, ``label`` and ``type`` added.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, LiteralString, TypeVar, cast

import asyncpg

from holdfast.engines.postgres.index_key import index_key
from holdfast.engines.postgres.queries import load
from holdfast.spi.graph import CypherStorage
from holdfast.spi.graph_draft import EdgePage, EntityDraft, RelationshipDraft, Walk
from holdfast.spi.id_page import IdPage
from holdfast.values.codec import decode_json
from holdfast.values.errors import InvalidInputError, NotFoundError, SchemaError
from holdfast.values.graph import Entity, Relationship, SubGraph
from holdfast_age.agtype import EXACT, NAMES, SUBJECT, from_agtype, same, to_agtype
from holdfast_age.cypher import check_calls
from holdfast_age.engine import Age, graph_name, no_graph, on_graph

_SQL = load("graph", package="holdfast_age")
_ENTITY, _RELATIONSHIP, _TRUNCATED = 1, 2, 3
_OF_ENTITY = frozenset({"id", "label", EXACT, NAMES, SUBJECT})
_OF_RELATIONSHIP = frozenset({"id", "type", EXACT, SUBJECT})
MAX_ROWS = 10_000
T = TypeVar("T")


class AgeGraph(CypherStorage):
    """``CypherStorage`` on Apache AGE; each tenant has its own graph.

    ::

        graph = AgeGraph(await Age.open("postgresql://app@db/main"), tenant="acme")
    """

    def __init__(self, age: Age, *, tenant: str = "default", max_rows: int = MAX_ROWS) -> None:
        self._age = age
        self._tenant = tenant
        self._graph = graph_name(tenant)
        self._max_rows = max_rows

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        """Store entities."""
        rows = [
            _properties(
                one.properties,
                one.subject,
                id=one.id,
                label=one.label,
                names=list(map(index_key, one.names)),
            )
            for one in drafts
        ]
        ids = [to_agtype(one.id) for one in drafts]
        await self._fetch(_SQL["add_entities"], ids, rows, safe=True)

    async def put_relationships(self, drafts: Sequence[RelationshipDraft]) -> None:
        """Store relationships."""
        missing = await self._fetch(
            _SQL["add_relationships"],
            [to_agtype(one.id) for one in drafts],
            [to_agtype(one.source) for one in drafts],
            [to_agtype(one.target) for one in drafts],
            [_properties(one.properties, one.subject, id=one.id, type=one.type) for one in drafts],
            safe=True,
        )
        if missing:
            raise NotFoundError("entity", from_agtype(missing[0]["name"]))

    async def walk(self, walk: Walk) -> SubGraph:
        """Return the subgraph within reach of an entity."""
        rows = await self._fetch(
            _SQL["walk"],
            *(to_agtype(walk.start), walk.depth, walk.types),
            *(walk.direction != "in", walk.direction != "out", walk.max_entities),
            safe=True,
        )
        return SubGraph(
            tuple(_entity(row) for row in rows if row["kind"] == _ENTITY),
            tuple(_relationship(row) for row in rows if row["kind"] == _RELATIONSHIP),
            any(row["kind"] == _TRUNCATED for row in rows),
        )

    async def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity and its relationships."""
        key = to_agtype(entity_id)
        return bool(await self._fetch(_SQL["delete_entity"], key, safe=False))

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship."""
        key = to_agtype(relationship_id)
        return bool(await self._fetch(_SQL["delete_relationship"], key, safe=False))

    async def find(self, names: Sequence[str]) -> list[Entity]:
        """Return the entities that have one of these names."""
        wanted = to_agtype(list(map(index_key, names)))
        rows = await self._fetch(_SQL["find_entities"], wanted, safe=True)
        return list(map(_entity, rows))

    async def page(self, page: IdPage) -> list[Entity]:
        """Return a page of the entities, by id."""
        low, high, rest = page.ranges()
        args = (page.after, low, high, rest, page.limit)
        return list(map(_entity, await self._fetch(_SQL["page"], *args, safe=True)))

    async def edges(self, page: EdgePage) -> list[Relationship]:
        """Return a page of the relationships of an entity, by id."""
        rows = await self._fetch(
            _SQL["edges"],
            *(to_agtype(page.entity), page.types),
            *(page.direction != "in", page.direction != "out", page.after, page.limit),
            safe=True,
        )
        return list(map(_relationship, rows))

    async def degrees(self, ids: Sequence[str]) -> list[int]:
        """Return how many relationships each entity has."""
        rows = await self._fetch(_SQL["degrees"], list(map(to_agtype, ids)), safe=True)
        return [int(row["count"]) for row in rows]

    async def query(
        self, text: str, params: dict[str, Any], columns: int, *, write: bool
    ) -> Sequence[Sequence[Any]]:
        """Run a query; raise ``InvalidInputError`` if it returns more than ``max_rows`` rows."""
        check_calls(text)
        if f"${self._age.tag}$" in text:
            raise InvalidInputError("query", "holds the mark that ends it: change the text")
        given = to_agtype(params, field="params")
        found = ", ".join(f"ag_catalog.agtype_out(c{at})::text" for at in range(columns))
        types = ", ".join(f"c{at} ag_catalog.agtype" for at in range(columns))
        sql = (
            f"SELECT {found} FROM ag_catalog.cypher("  # noqa: S608 - the text is quoted and checked
            f"'{self._graph}', ${self._age.tag}${text}${self._age.tag}$, $1) AS ({types}) LIMIT $2"
        )
        rows = await self._with_graph(lambda: self._cypher(sql, given, write=write))
        return [list(map(from_agtype, row)) for row in rows]

    async def _cypher(self, sql: str, given: str, *, write: bool) -> Sequence[Any]:
        async with (
            self._age.postgres.connection(writes=write) as connection,
            connection.transaction(readonly=not write),
        ):
            try:
                rows: Sequence[Any] = await connection.fetch(sql, given, self._max_rows + 1)
            except asyncpg.PostgresError as error:
                refused = _refused(error, self._tenant)
                if refused is None:
                    raise
                raise refused from error
            if len(rows) > self._max_rows:
                # Raise inside of the transaction, so that the writes of the query are rolled back.
                raise InvalidInputError(
                    "query", f"finds more than {self._max_rows} rows: add a LIMIT"
                )
            return rows

    async def _fetch(self, sql: LiteralString, *args: Any, safe: bool) -> Sequence[Any]:
        named = on_graph(sql, self._graph)
        return await self._with_graph(
            lambda: self._age.postgres.fetch_across(named, *args, safe=safe),
        )

    async def _with_graph(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a call. If there is no graph, create it with ``auto_create``, else raise."""
        try:
            return await call()
        except SchemaError as error:
            if not self._age.auto_create:
                raise no_graph(self._tenant) from error
        await self._age.create(self._tenant)
        return await call()


def _properties(exact: str, subject: str, **own: Any) -> str:
    """Return the properties that Cypher sees, and the exact text of the given ones."""
    names = own.pop("names", None)
    kept = {} if names is None else {NAMES: names}
    return to_agtype({**decode_json(exact), **own, **kept, SUBJECT: subject, EXACT: exact})


def _exact(found: dict[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Return the properties as they were stored, or, if Cypher has changed them, as they are."""
    seen = {key: value for key, value in found.items() if key not in own}
    if isinstance(found.get(EXACT), str):
        stored = cast("dict[str, Any]", decode_json(found[EXACT]))
        if same({key: value for key, value in stored.items() if key not in own}, seen):
            return stored
    return seen


def _entity(row: Any) -> Entity:
    found = from_agtype(row["properties"])
    properties = _exact(found, _OF_ENTITY)
    return Entity(found["label"], properties, found["id"], str(found.get(SUBJECT) or ""))


def _relationship(row: Any) -> Relationship:
    found = from_agtype(row["properties"])
    properties = _exact(found, _OF_RELATIONSHIP)
    what = (found["type"], properties, found["id"], str(found.get(SUBJECT) or ""))
    return Relationship(row["source"], row["target"], *what)


def _refused(error: asyncpg.PostgresError, tenant: str) -> Exception | None:
    """Return our error if the query is at fault, else ``None``."""
    state = str(getattr(error, "sqlstate", None) or "")
    text = str(error)
    if state == "3F000":
        return no_graph(tenant)
    if state == "25006":
        return InvalidInputError("query", "writes, and this call only reads: pass write=True")
    if state == "42804" and "column definition list" in text:
        return InvalidInputError("columns", "must have one name for each value that is returned")
    if state[:2] in {"0A", "22", "42"} and state != "42501":
        return InvalidInputError("query", f"{text} ({state})")
    if state[:2] == "23":
        return InvalidInputError("query", f"would break the graph: {text}")
    return None
