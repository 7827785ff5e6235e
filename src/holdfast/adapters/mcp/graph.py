"""The knowledge graph of an MCP memory server: entities with observations, and relations.

Each entity and each relation is an item, whose key is its number in the order of creation. One more
item, the head, holds the next number. Every write also writes the head, and fails if the head's
version is not the one that was read, so that concurrent writers lose nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.contracts.items import Items
from holdfast.values.errors import InvalidInputError, NotFoundError, VersionConflictError
from holdfast.values.items import ItemKey, ItemPut

T = TypeVar("T")
Row = dict[str, Any]
ROOT = "mcp"
"""The first label of the namespaces."""

_ENTITIES, _RELATIONS, _HEAD = "entities", "relations", "head"
_PAGE = 1_000
"""How many items one search returns."""

MAX_SIZE = 8 << 20
"""The maximal size of a graph, since it is read and returned as a whole."""

_TEXT_SIZE = 100
"""What each text of the graph counts in addition to its characters, for the memory it needs."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph at one version: entities and relations by number, in the order of creation."""

    version: int = 0
    next_number: int = 0
    entities: dict[int, Row] = field(default_factory=dict)
    relations: dict[int, Row] = field(default_factory=dict)
    size: int = 0

    def to_json(self) -> dict[str, list[Row]]:
        """Return the graph in the form in which the tools return it.

        >>> Graph().to_json()
        {'entities': [], 'relations': []}
        """
        return {
            _ENTITIES: list(self.entities.values()),
            _RELATIONS: list(self.relations.values()),
        }

    def around(self, entities: Iterable[Row]) -> dict[str, list[Row]]:
        """Return the entities, and all relations that begin or end at one of them.

        >>> Graph().around([])
        {'entities': [], 'relations': []}
        """
        found = list(entities)
        names = {one["name"] for one in found}
        touching = [r for r in self.relations.values() if r["from"] in names or r["to"] in names]
        return {_ENTITIES: found, _RELATIONS: touching}


class _Draft:
    """Changes to a graph that are not stored yet."""

    def __init__(self, seen: Graph) -> None:
        self.size = seen.size
        self.next_number = seen.next_number
        self.entities = dict(seen.entities)
        self.relations = dict(seen.relations)
        self.changed: dict[tuple[str, int], Row | None] = {}

    def add(self, kind: str, row: Row) -> None:
        self.set(kind, self.next_number, row)
        self.next_number += 1

    def set(self, kind: str, number: int, row: Row) -> None:
        rows = self._rows(kind)
        self.size += _size(row) - (_size(rows[number]) if number in rows else 0)
        rows[number] = row
        self.changed[kind, number] = row

    def drop(self, kind: str, is_gone: Callable[[Row], bool]) -> None:
        rows = self._rows(kind)
        for number in [number for number, row in rows.items() if is_gone(row)]:
            self.size -= _size(rows.pop(number))
            self.changed[kind, number] = None

    def numbers(self) -> dict[str, int]:
        """Return the number of the first entity with each name."""
        found: dict[str, int] = {}
        for number, one in self.entities.items():
            found.setdefault(one["name"], number)
        return found

    def at(self, version: int) -> Graph:
        return Graph(version, self.next_number, self.entities, self.relations, self.size)

    def _rows(self, kind: str) -> dict[int, Row]:
        return self.entities if kind == _ENTITIES else self.relations


class MemoryGraph:
    """The knowledge graph of one owner, whose entities are identified by name.

    A read costs one round trip if nothing has changed since the last read; a write costs one more.
    A write that would make the graph larger than ``MAX_SIZE`` raises ``InvalidInputError``.

    ::

        graph = MemoryGraph(state.items)
        await graph.create_entities(
            [{"name": "Riga", "entityType": "city", "observations": ["has a harbour"]}]
        )
    """

    def __init__(self, items: Items, *, name: str = "default") -> None:
        self._items = items
        self._root = (ROOT, name)
        self._head = ItemKey(self._root, _HEAD)
        self._seen = Graph()
        # Of many calls at once one reads the whole graph, and no two write on the same version.
        self._reading, self._writing = asyncio.Lock(), asyncio.Lock()

    async def read(self) -> Graph:
        """Return the graph.

        ::

            everything = (await graph.read()).to_json()
        """
        if await self._version() == self._seen.version:
            return self._seen
        async with self._reading:
            while True:
                version = await self._version()
                if version == self._seen.version:
                    return self._seen
                found = await self._load(version)
                # A graph that changed between two pages is read again.
                if await self._version() == version:
                    self._seen = found
                    return found

    async def search(self, query: str) -> dict[str, list[Row]]:
        """Return the entities that have ``query`` in their name, type or an observation.

        ::

            found = await graph.search("harbour")
        """
        graph, wanted = await self.read(), query.lower()

        def fits(one: Row) -> bool:
            texts = (one["name"], one["entityType"], *one["observations"])
            return any(wanted in text.lower() for text in texts)

        return graph.around(one for one in graph.entities.values() if fits(one))

    async def open(self, names: Sequence[str]) -> dict[str, list[Row]]:
        """Return the entities with these names.

        ::

            found = await graph.open(["Riga"])
        """
        graph, wanted = await self.read(), set(names)
        return graph.around(one for one in graph.entities.values() if one["name"] in wanted)

    async def create_entities(self, entities: Sequence[Row]) -> list[Row]:
        """Add the entities whose names are new, and return them.

        Two entities of one call with the same name are both added, as in the reference server. ::

            added = await graph.create_entities(entities)
        """

        def edit(draft: _Draft) -> list[Row]:
            known = {one["name"] for one in draft.entities.values()}
            new = [one for one in entities if one["name"] not in known]
            for one in new:
                draft.add(_ENTITIES, one)
            return new

        return await self._change(edit)

    async def create_relations(self, relations: Sequence[Row]) -> list[Row]:
        """Add the relations that are new, and return them.

        ::

            added = await graph.create_relations(
                [{"from": "Riga", "to": "Latvia", "relationType": "lies in"}]
            )
        """

        def edit(draft: _Draft) -> list[Row]:
            known = {_ends(one) for one in draft.relations.values()}
            new = [one for one in relations if _ends(one) not in known]
            for one in new:
                draft.add(_RELATIONS, one)
            return new

        return await self._change(edit)

    async def add_observations(self, observations: Sequence[tuple[str, list[str]]]) -> list[Row]:
        """Add observations to entities, all or none. An unknown entity raises ``NotFoundError``.

        ::

            added = await graph.add_observations([("Riga", ["is old"])])
        """

        def edit(draft: _Draft) -> list[Row]:
            return _observe(draft, observations)

        return await self._change(edit)

    async def delete_entities(self, names: Sequence[str]) -> None:
        """Delete entities, and the relations that begin or end at them.

        ::

            await graph.delete_entities(["Riga"])
        """
        gone = set(names)

        def edit(draft: _Draft) -> None:
            draft.drop(_ENTITIES, lambda one: one["name"] in gone)
            draft.drop(_RELATIONS, lambda one: one["from"] in gone or one["to"] in gone)

        await self._change(edit)

    async def delete_observations(self, deletions: Sequence[tuple[str, list[str]]]) -> None:
        """Delete observations of entities. Observations that do not exist are ignored.

        ::

            await graph.delete_observations([("Riga", ["is old"])])
        """
        gone: dict[str, set[str]] = {}
        for name, texts in deletions:
            gone.setdefault(name, set()).update(texts)

        def edit(draft: _Draft) -> None:
            numbers = draft.numbers()
            for name in gone.keys() & numbers.keys():
                one = draft.entities[numbers[name]]
                left = [text for text in one["observations"] if text not in gone[name]]
                if len(left) < len(one["observations"]):
                    draft.set(_ENTITIES, numbers[name], one | {"observations": left})

        await self._change(edit)

    async def delete_relations(self, relations: Sequence[Row]) -> None:
        """Delete relations.

        ::

            await graph.delete_relations(relations)
        """
        gone = {_ends(one) for one in relations}

        def edit(draft: _Draft) -> None:
            draft.drop(_RELATIONS, lambda one: _ends(one) in gone)

        await self._change(edit)

    async def _change(self, edit: Callable[[_Draft], T]) -> T:
        async with self._writing:
            return await self._changed(edit)

    async def _changed(self, edit: Callable[[_Draft], T]) -> T:
        while True:
            seen = await self.read()
            draft = _Draft(seen)
            answer = edit(draft)
            if not draft.changed:
                return answer
            if draft.size > max(MAX_SIZE, seen.size):
                raise InvalidInputError(
                    "graph",
                    f"would have a size of {draft.size}, and at most {MAX_SIZE} is allowed: "
                    "delete entities or observations first",
                )
            puts = [
                ItemPut((*self._root, kind), _key(number), row)
                for (kind, number), row in draft.changed.items()
            ]
            head = {"next_number": draft.next_number}
            puts.append(ItemPut(*self._head, head, expected_version=seen.version))
            try:
                versions = await self._items.put_many(puts)
            except VersionConflictError:
                continue  # another writer was first: read again
            self._seen = draft.at(versions[-1])
            return answer

    async def _version(self) -> int:
        [head] = await self._items.get_many([self._head])
        return head.version if head else 0

    async def _load(self, version: int) -> Graph:
        rows: dict[str, dict[int, Row]] = {_ENTITIES: {}, _RELATIONS: {}}
        next_number = offset = 0
        while True:
            page = await self._items.search(self._root, limit=_PAGE, offset=offset)
            for hit in page:
                one = hit.item
                if one.key == _HEAD:
                    next_number = one.value["next_number"]
                else:
                    rows[one.namespace[-1]][int(one.key)] = one.value
            offset += len(page)
            if len(page) < _PAGE:
                break
        entities, relations = (dict(sorted(some.items())) for some in rows.values())
        size = sum(_size(row) for some in (entities, relations) for row in some.values())
        return Graph(version, next_number, entities, relations, size)


def _observe(draft: _Draft, observations: Sequence[tuple[str, list[str]]]) -> list[Row]:
    """Add observations, in time linear in the number of new and existing observations."""
    numbers, answer = draft.numbers(), list[Row]()
    texts: dict[int, tuple[list[str], set[str]]] = {}
    for name, contents in observations:
        number = numbers.get(name)
        if number is None:
            raise NotFoundError("entity", name)
        if number not in texts:
            there = draft.entities[number]["observations"]
            texts[number] = list(there), set(there)
        said, known = texts[number]
        new = [text for text in contents if text not in known]
        said += new
        known.update(new)
        answer.append({"entityName": name, "addedObservations": new})
    for number, (said, _) in texts.items():
        one = draft.entities[number]
        if len(said) > len(one["observations"]):
            draft.set(_ENTITIES, number, one | {"observations": said})
    return answer


def _ends(relation: Row) -> tuple[str, str, str]:
    return relation["from"], relation["to"], relation["relationType"]


def _size(row: Row) -> int:
    texts = [one for name, one in row.items() if name != "observations"]
    texts += row.get("observations", ())
    return sum(len(one) + _TEXT_SIZE for one in texts)


def _key(number: int) -> str:
    return f"{number:012d}"
