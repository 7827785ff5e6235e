"""Entities and how they are related."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from holdfast.values.ids import new_id
from holdfast.values.text import name_key

Direction: TypeAlias = Literal["both", "out", "in"]


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: a label such as ``Person``, and free properties.

    It is found by its id, and by the property ``name`` if that is text.

    >>> Entity("Person", {"name": "Ravi"}, "ravi").label
    'Person'
    """

    label: str
    properties: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=new_id)
    subject: str = ""
    """Whom it is about, if not its owner: ``state.erase(subject=)`` deletes it."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """An edge from one entity to another: a type such as ``works_on``, and free properties.

    >>> Relationship("ravi", "x", "works_on").type
    'works_on'
    """

    source_id: str
    target_id: str
    type: str
    properties: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=new_id)
    subject: str = ""
    """Whom it is about, if not its owner: ``state.erase(subject=)`` deletes it."""


@dataclass(frozen=True, slots=True)
class SubGraph:
    """What a graph traversal found: entities by distance, then id; relationships by id.

    ``truncated`` is true if there were more entities than the limit.

    >>> SubGraph((), ()).truncated
    False
    """

    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]
    truncated: bool = False


def entity_keys(entity_id: str, properties: dict[str, Any]) -> list[str]:
    """Return the lookup keys of an entity: its id and its name, without case and punctuation.

    >>> entity_keys("p1", {"name": "Project-X"})
    ['p1', 'project x']
    """
    name = properties.get("name")
    keys = [name_key(entity_id), name_key(name) if isinstance(name, str) else ""]
    return [key for key in dict.fromkeys(keys) if key]
