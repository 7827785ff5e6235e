"""A knowledge graph that runs Cypher."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.graph import KnowledgeGraph
from holdfast.spi.graph import CypherStorage
from holdfast.values.checks import check_list, check_text
from holdfast.values.codec import encode_object
from holdfast.values.errors import InvalidInputError, NotSupportedError


@runtime_checkable
class CypherCapable(Protocol):
    """A graph store that runs Cypher; check with ``isinstance(store, CypherCapable)``."""

    @abstractmethod
    async def query_cypher(
        self,
        query: str,
        params: dict[str, Any] | None = None,
        *,
        columns: Sequence[str] = ("result",),
        write: bool = False,
    ) -> list[dict[str, Any]]:
        """Run a query and return its rows with the named columns; read-only unless ``write``.

        Values belong in ``params``, never in the text of the query.

        ::

            rows = await graph.query_cypher("MATCH (n) RETURN n.name", columns=["name"])
        """
        ...


class CypherGraph(KnowledgeGraph, CypherCapable):
    """Implements ``Graph`` and ``CypherCapable`` on an engine that runs Cypher.

    ::

        graph = CypherGraph(AgeGraph(await Age.open("postgresql://app@db/main"), tenant="acme"))
    """

    _storage: CypherStorage

    def __init__(self, storage: CypherStorage) -> None:
        super().__init__(storage)

    async def query_cypher(
        self,
        query: str,
        params: dict[str, Any] | None = None,
        *,
        columns: Sequence[str] = ("result",),
        write: bool = False,
    ) -> list[dict[str, Any]]:
        """Run a query and return its rows with the named columns; read-only unless ``write``.

        Entities are vertices with the label ``Entity``, relationships are edges with the label
        ``Relationship``; both have the user's properties and ``id``, a vertex also ``label``, an
        edge also ``type``. Values belong in ``params``. More than ``max_rows`` rows are refused.

        ::

            await graph.query_cypher(
                "MATCH (a:Entity)-[r:Relationship]->(b) WHERE a.id = $id RETURN r.type, b.name",
                {"id": "ravi"},
                columns=["type", "name"],
            )
        """
        if self._scope.knower:
            raise NotSupportedError(
                "graph",
                "query_cypher for one owner",
                why="a query reaches the whole graph of the tenant: use the state itself",
            )
        text = _query(query)
        given = {} if params is None else params
        encode_object(given, field="params")
        names = _columns(columns)
        rows = await self._storage.query(text, given, len(names), write=write)
        return [dict(zip(names, row, strict=True)) for row in rows]


def _query(query: object) -> str:
    text = check_text("query", query)
    if not text.strip():
        raise InvalidInputError("query", "is empty")
    if "\x00" in text:
        raise InvalidInputError("query", "must not contain U+0000: pass values as params")
    return text


def _columns(columns: object) -> list[str]:
    names = [
        check_text(f"columns[{at}]", name) for at, name in enumerate(check_list("columns", columns))
    ]
    if not 0 < len(names) == len(set(names)):
        raise InvalidInputError("columns", "must be one or more names without duplicates")
    return names
