"""The nine tools of MCP's reference memory server, with its names, arguments and answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.adapters.mcp.tool import Caller, Done, Tool, as_text


class Entity(msgspec.Struct, rename="camel"):
    """An entity of the graph."""

    name: Annotated[str, Meta(description="The name of the entity.")]
    entity_type: Annotated[str, Meta(description="The kind of entity, such as person or city.")]
    observations: Annotated[list[str], Meta(description="What is known about it, one fact each.")]


class Relation(msgspec.Struct, rename={"source": "from", "relation_type": "relationType"}):
    """A relation from one entity to another."""

    source: Annotated[str, Meta(description="The name of the entity that it begins at.")]
    to: Annotated[str, Meta(description="The name of the entity that it ends at.")]
    relation_type: Annotated[str, Meta(description="What the first is to the second.")]


class Observed(msgspec.Struct, rename="camel"):
    """Observations to add to an entity."""

    entity_name: Annotated[str, Meta(description="The name of the entity.")]
    contents: Annotated[list[str], Meta(description="The observations to add.")]


class Unobserved(msgspec.Struct, rename="camel"):
    """Observations to delete from an entity."""

    entity_name: Annotated[str, Meta(description="The name of the entity.")]
    observations: Annotated[list[str], Meta(description="The observations to delete.")]


class Added(msgspec.Struct, rename="camel"):
    """The observations that an entity did not have before."""

    entity_name: str
    added_observations: list[str]


class Entities(msgspec.Struct):
    """Entities to create, or those that were created."""

    entities: list[Entity]


class Relations(msgspec.Struct):
    """Relations to create or delete, or those that were created."""

    relations: list[Relation]


class Graph(msgspec.Struct):
    """The graph, or a part of it."""

    entities: list[Entity]
    relations: list[Relation]


class AddObservations(msgspec.Struct):
    """The arguments of ``add_observations``."""

    observations: list[Observed]


class Results(msgspec.Struct):
    """The answer of ``add_observations``."""

    results: list[Added]


class EntityNames(msgspec.Struct, rename="camel"):
    """The arguments of ``delete_entities``."""

    entity_names: Annotated[list[str], Meta(description="The names of the entities to delete.")]


class DeleteObservations(msgspec.Struct):
    """The arguments of ``delete_observations``."""

    deletions: list[Unobserved]


class Query(msgspec.Struct):
    """The arguments of ``search_nodes``."""

    query: Annotated[str, Meta(description="A text to look for in names, types and observations.")]


class Names(msgspec.Struct):
    """The arguments of ``open_nodes``."""

    names: Annotated[list[str], Meta(description="The names of the entities to return.")]


class Nothing(msgspec.Struct):
    """No arguments."""


def _rows(some: list[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = msgspec.to_builtins(some)
    return rows


async def _create_entities(caller: Caller, asked: Entities) -> Entities:
    return msgspec.convert(
        {"entities": await caller.graph.create_entities(_rows(asked.entities))}, Entities
    )


async def _create_relations(caller: Caller, asked: Relations) -> Relations:
    return msgspec.convert(
        {"relations": await caller.graph.create_relations(_rows(asked.relations))}, Relations
    )


async def _add_observations(caller: Caller, asked: AddObservations) -> Results:
    wanted = [(one.entity_name, one.contents) for one in asked.observations]
    return msgspec.convert({"results": await caller.graph.add_observations(wanted)}, Results)


async def _delete_entities(caller: Caller, asked: EntityNames) -> Done:
    await caller.graph.delete_entities(asked.entity_names)
    return Done(success=True, message="Entities deleted successfully")


async def _delete_observations(caller: Caller, asked: DeleteObservations) -> Done:
    gone = [(one.entity_name, one.observations) for one in asked.deletions]
    await caller.graph.delete_observations(gone)
    return Done(success=True, message="Observations deleted successfully")


async def _delete_relations(caller: Caller, asked: Relations) -> Done:
    await caller.graph.delete_relations(_rows(asked.relations))
    return Done(success=True, message="Relations deleted successfully")


async def _read_graph(caller: Caller, _asked: Nothing) -> Graph:
    return msgspec.convert((await caller.graph.read()).to_json(), Graph)


async def _search_nodes(caller: Caller, asked: Query) -> Graph:
    return msgspec.convert(await caller.graph.search(asked.query), Graph)


async def _open_nodes(caller: Caller, asked: Names) -> Graph:
    return msgspec.convert(await caller.graph.open(asked.names), Graph)


def _message(answer: Any) -> str:
    return str(answer["message"])


GRAPH_TOOLS = (
    Tool(
        "create_entities",
        "Create Entities",
        "Add entities to the knowledge graph. An entity whose name is there already is left out.",
        Entities,
        Entities,
        _create_entities,
        text=lambda answer: as_text(answer["entities"]),
    ),
    Tool(
        "create_relations",
        "Create Relations",
        "Add relations between entities to the knowledge graph. Write them in active voice.",
        Relations,
        Relations,
        _create_relations,
        text=lambda answer: as_text(answer["relations"]),
    ),
    Tool(
        "add_observations",
        "Add Observations",
        "Add observations to entities that are in the knowledge graph.",
        AddObservations,
        Results,
        _add_observations,
        text=lambda answer: as_text(answer["results"]),
    ),
    Tool(
        "delete_entities",
        "Delete Entities",
        "Delete entities and all their relations from the knowledge graph.",
        EntityNames,
        Done,
        _delete_entities,
        deletes=True,
        text=_message,
    ),
    Tool(
        "delete_observations",
        "Delete Observations",
        "Delete observations of entities from the knowledge graph.",
        DeleteObservations,
        Done,
        _delete_observations,
        deletes=True,
        text=_message,
    ),
    Tool(
        "delete_relations",
        "Delete Relations",
        "Delete relations from the knowledge graph.",
        Relations,
        Done,
        _delete_relations,
        deletes=True,
        text=_message,
    ),
    Tool(
        "read_graph",
        "Read Graph",
        "Return the whole knowledge graph.",
        Nothing,
        Graph,
        _read_graph,
        reads=True,
    ),
    Tool(
        "search_nodes",
        "Search Nodes",
        "Return the entities that contain a text, with the relations that touch them.",
        Query,
        Graph,
        _search_nodes,
        reads=True,
    ),
    Tool(
        "open_nodes",
        "Open Nodes",
        "Return entities by name, with the relations that touch them.",
        Names,
        Graph,
        _open_nodes,
        reads=True,
    ),
)
