"""The knowledge graph: search an entity, show its neighbours, delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.graph_path import joined, path_between, without
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import NotFoundError
from holdfast.values.graph import Entity, Relationship, SubGraph

SHOWN = 200
LISTED = 50
DEPTHS = (1, 2, 3)
FAR = 4
"""Maximum number of relationships in a path."""

EXPANDED, MOST_EXPANDED = 50, 10
"""How many neighbours an expanded entity adds, and how many entities can be expanded."""

REACH = 1000
"""Maximum number of entities that the search for a path reads."""


async def graph(desk: Desk, request: Request) -> Response:
    """Show an entity's neighbourhood as a picture, and the same as a list."""
    query = request.query_params
    store = desk.memory_state(request).graph
    words, start = query.get("q", "").strip(), query.get("from", "")
    found: list[Entity] = await store.find_entities([words]) if words else []
    if start and any(one.id == start for one in found):
        # The name of the entity that is shown, with other choices beside it.
        words = ""
    elif words:
        start = ""
    listed = []
    if not words and not start:
        listed = await store.list_entities(limit=LISTED, after=query.get("after") or None)
    if not start and len(found) == 1:
        start = found[0].id
    depth = int(query["depth"]) if query.get("depth", "") in {"1", "2", "3"} else 1
    near = SubGraph((), ())
    types = [one for one in query.getlist("types") if one] or None
    expanded = [one for one in dict.fromkeys(query.getlist("expand")) if one][:MOST_EXPANDED]
    edges: list[Relationship] = []
    if start:
        near = await store.get_neighbors(start, depth=depth, relationship_types=types, limit=SHOWN)
        if not near.entities:
            raise NotFoundError("entity", start)
        beside = [
            await store.get_neighbors(one, relationship_types=types, limit=EXPANDED)
            for one in expanded
        ]
        near = joined([near, *beside])
        edges = await store.list_relationships(
            start, relationship_types=types, limit=LISTED, after=query.get("edge") or None
        )
    hidden = [one for one in dict.fromkeys(query.getlist("hide")) if one != start][:SHOWN]
    near = without(near, set(hidden))
    goal, trail = query.get("to", "").strip(), None
    goals = await store.find_entities([goal]) if start and goal else []
    if goals:
        goal = goals[0].id
        wide = await store.get_neighbors(start, depth=FAR, limit=REACH)
        trail = path_between(without(wide, set(hidden)), start, goal)
        if trail:
            on_it = {start, *(hop.to.id for hop in trail)}
            near = without(wide, {one.id for one in wide.entities if one.id not in on_it})
    shown = [one.id for one in near.entities]
    degrees = dict(zip(shown, await store.degrees(shown), strict=True))
    ends = {end for one in edges for end in (one.source_id, one.target_id)}
    others = await store.find_entities(sorted(ends.difference(shown))) if ends else []
    return desk.page(
        request,
        "graph.html",
        query=query,
        listed=listed,
        next=_next(query.multi_items(), listed),
        words=words,
        found=found,
        start=start,
        depth=depth,
        depths=DEPTHS,
        near=near,
        names={one.id: name(one) for one in (*others, *near.entities)},
        edges=edges,
        edges_after=edges[-1].id if len(edges) == LISTED else "",
        degrees=degrees,
        types=sorted({one.type for one in (*near.relationships, *edges)}.union(types or ())),
        chosen_types=types or [],
        expanded=expanded,
        picture=_picture(near, start, degrees),
        name_of=name,
        shown=SHOWN,
        hidden=hidden,
        goal=goal,
        goal_known=bool(goals),
        trail=trail,
        far=FAR,
        kept=urlencode(
            [
                ("from", start),
                *(
                    (key, value)
                    for key, value in query.multi_items()
                    if key in {"depth", "owner", "types", "expand"} and value
                ),
            ]
        ),
        hides=urlencode([("hide", one) for one in hidden]),
    )


def _next(query: list[tuple[str, str]], listed: list[Entity]) -> str:
    if len(listed) < LISTED:
        return ""
    kept = [(name, value) for name, value in query if name != "after"]
    return urlencode([*kept, ("after", str(listed[-1].id))])


def name(entity: Entity) -> str:
    """Return the name of an entity for people: its property ``name``, or its id.

    >>> name(Entity("Person", {"name": "Ravi"}, id="p1"))
    'Ravi'
    """
    found = entity.properties.get("name")
    return found if isinstance(found, str) and found else entity.id


def _picture(near: SubGraph, start: str, degrees: Mapping[str, int]) -> dict[str, object]:
    drawn: Counter[str] = Counter()
    for one in near.relationships:
        drawn.update({one.source_id, one.target_id})
    return {
        "start": start,
        "nodes": [
            {
                "id": one.id,
                "name": name(one)[:60],
                "label": one.label[:40],
                "more": max(degrees.get(one.id, 0) - drawn[one.id], 0),
            }
            for one in near.entities
        ],
        "links": [
            {"source": one.source_id, "target": one.target_id, "type": one.type[:40]}
            for one in near.relationships
        ],
    }


async def delete_entity(desk: Desk, request: Request) -> Response:
    """Delete an entity and its relationships."""
    form = desk.form(request)
    if not await desk.memory_state(request).graph.delete_entity(form.get("entity", "")):
        raise NotFoundError("entity", form.get("entity", ""))
    return back(form, "/studio/graph")


async def delete_relationship(desk: Desk, request: Request) -> Response:
    """Delete a relationship."""
    form = desk.form(request)
    store = desk.memory_state(request).graph
    if not await store.delete_relationship(form.get("relationship", "")):
        raise NotFoundError("relationship", form.get("relationship", ""))
    return back(form, "/studio/graph")


SCREEN = Screen(
    "/studio/graph",
    graph,
    {"delete-entity": delete_entity, "delete-relationship": delete_relationship},
)
