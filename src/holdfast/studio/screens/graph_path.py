"""Parts of a neighbourhood: a path between two entities, and the rest when some are hidden."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

from holdfast.values.graph import Entity, Relationship, SubGraph


class Hop(NamedTuple):
    """One relationship of a path, and the entity that it leads to."""

    relationship: Relationship
    forward: bool
    """Whether the path follows the direction of the relationship."""

    to: Entity


def path_between(near: SubGraph, start: str, end: str) -> list[Hop] | None:
    """Return a shortest path within a neighbourhood, in any direction; ``None`` if there is none.

    >>> a, b = Entity("Person", {}, id="a"), Entity("Person", {}, id="b")
    >>> near = SubGraph((a, b), (Relationship("b", "a", "knows"),))
    >>> [(hop.relationship.type, hop.forward, hop.to.id) for hop in path_between(near, "a", "b")]
    [('knows', False, 'b')]
    """
    known = {one.id: one for one in near.entities}
    if start not in known or end not in known:
        return None
    edges: dict[str, list[tuple[str, Relationship, bool]]] = {}
    for one in near.relationships:
        edges.setdefault(one.source_id, []).append((one.target_id, one, True))
        edges.setdefault(one.target_id, []).append((one.source_id, one, False))
    came: dict[str, tuple[str, Relationship, bool] | None] = {start: None}
    waiting = deque([start])
    while waiting and end not in came:
        here = waiting.popleft()
        for there, relationship, forward in edges.get(here, []):
            if there in known and there not in came:
                came[there] = (here, relationship, forward)
                waiting.append(there)
    if end not in came:
        return None
    found: list[Hop] = []
    at = end
    while (step := came[at]) is not None:
        found.append(Hop(step[1], step[2], known[at]))
        at = step[0]
    return found[::-1]


def joined(parts: Sequence[SubGraph]) -> SubGraph:
    """Return several neighbourhoods as one.

    >>> a, b = Entity("Person", {}, id="a"), Entity("Person", {}, id="b")
    >>> [one.id for one in joined([SubGraph((a,), ()), SubGraph((a, b), ())]).entities]
    ['a', 'b']
    """
    return SubGraph(
        tuple({one.id: one for part in parts for one in part.entities}.values()),
        tuple({one.id: one for part in parts for one in part.relationships}.values()),
        truncated=any(part.truncated for part in parts),
    )


def without(near: SubGraph, hidden: Collection[str]) -> SubGraph:
    """Return a neighbourhood without some entities and their relationships.

    >>> a, b = Entity("Person", {}, id="a"), Entity("Person", {}, id="b")
    >>> [one.id for one in without(SubGraph((a, b), ()), {"b"}).entities]
    ['a']
    """
    return SubGraph(
        tuple(one for one in near.entities if one.id not in hidden),
        tuple(
            one
            for one in near.relationships
            if one.source_id not in hidden and one.target_id not in hidden
        ),
        truncated=near.truncated,
    )
