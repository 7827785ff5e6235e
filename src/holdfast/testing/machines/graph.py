"""Random graphs of few entities with many edges between them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.graph import Direction, Entity, Relationship

NAMES = st.sampled_from(["a", "B", "c", "d", "e"])
EDGES = st.sampled_from([f"r{at}" for at in range(8)])
TYPES = st.sampled_from(["knows", "likes"])
ENTITIES = st.builds(
    Entity,
    label=st.sampled_from(["Person", "Robot"]),
    properties=st.sampled_from([{}, {"name": "Ann"}, {"name": "c"}, {"name": None, "n": 1.0}]),
    id=NAMES,
    subject=st.sampled_from(["", "", "ana"]),
)
RELATIONSHIPS = st.builds(
    Relationship,
    source_id=NAMES,
    target_id=NAMES,
    type=TYPES,
    properties=st.sampled_from([{}, {"since": 2020}]),
    id=EDGES,
    subject=st.sampled_from(["", "", "ana"]),
)
DIRECTIONS: st.SearchStrategy[Direction] = st.sampled_from(["both", "out", "in"])


class GraphMachine(EngineMachine):
    """Entities and relationships that come, change and go under walks."""

    contract = "graph"

    @rule(entities=st.lists(ENTITIES, max_size=3))
    def add_entities(self, entities: list[Entity]) -> None:
        """New or replaced."""
        self.both(lambda store: store.add_entities(entities))

    @rule(relationships=st.lists(RELATIONSHIPS, max_size=3))
    def add_relationships(self, relationships: list[Relationship]) -> None:
        """New or replaced, or refused for want of an end."""
        self.both(lambda store: store.add_relationships(relationships))

    @rule(
        name=NAMES,
        depth=st.integers(0, 4),
        types=st.none() | st.lists(TYPES, max_size=2),
        direction=DIRECTIONS,
        most=st.sampled_from([0, 1, 2, 3, 1000]),
    )
    def get_neighbors(
        self, name: str, depth: int, types: list[str] | None, direction: Direction, most: int
    ) -> None:
        """Walk."""
        self.both(
            lambda store: store.get_neighbors(
                name,
                depth=depth,
                relationship_types=types,
                direction=direction,
                limit=most,
            )
        )

    @rule(limit=st.integers(0, 3), after=st.none() | NAMES)
    def list_entities(self, limit: int, after: str | None) -> None:
        """A page."""
        self.both(lambda store: store.list_entities(limit=limit, after=after))

    @rule(
        name=NAMES,
        types=st.none() | st.lists(TYPES, max_size=2),
        direction=DIRECTIONS,
        limit=st.integers(0, 3),
        after=st.none() | EDGES,
    )
    def list_relationships(
        self,
        name: str,
        types: list[str] | None,
        direction: Direction,
        limit: int,
        after: str | None,
    ) -> None:
        """A page of the edges of one entity."""
        self.both(
            lambda store: store.list_relationships(
                name, relationship_types=types, direction=direction, limit=limit, after=after
            )
        )

    @rule(names=st.lists(NAMES, max_size=3))
    def degrees(self, names: list[str]) -> None:
        """Count edges."""
        self.both(lambda store: store.degrees(names))

    @rule(name=NAMES)
    def delete_entity(self, name: str) -> None:
        """With its edges."""
        self.both(lambda store: store.delete_entity(name))

    @rule(edge=EDGES)
    def delete_relationship(self, edge: str) -> None:
        """Alone."""
        self.both(lambda store: store.delete_relationship(edge))

    @rule(names=st.lists(st.sampled_from(["A", "b", "C", "ANN", "none"]), max_size=3))
    def find_entities(self, names: list[str]) -> None:
        """By id or name."""
        self.both(lambda store: store.find_entities(names))
