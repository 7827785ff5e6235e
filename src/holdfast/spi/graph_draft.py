"""Checked input of a graph store: properties as JSON text, and the names for lookup."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.values.checks import check_id, check_list, check_subject, check_text
from holdfast.values.codec import encode_object
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Direction, Entity, Relationship, entity_keys
from holdfast.values.text import name_key


@dataclass(frozen=True, slots=True)
class EntityDraft:
    """A checked entity; ``names`` are the folded names by which it is found.

    ``subject`` is whom it is about; empty for its owner.

    >>> [draft] = draft_entities([Entity("Project", {"name": "Project-X"}, "p1")])
    >>> draft.names
    ['p1', 'project x']
    """

    id: str
    label: str
    properties: str
    names: list[str]
    subject: str = ""


@dataclass(frozen=True, slots=True)
class RelationshipDraft:
    """A checked relationship.

    >>> [draft] = draft_relationships([Relationship("ravi", "x", "works_on", {}, "r1")])
    >>> draft.source, draft.target, draft.properties
    ('ravi', 'x', '{}')
    """

    id: str
    source: str
    target: str
    type: str
    properties: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """The checked arguments of a traversal; without ``types`` it follows all relationships.

    >>> Walk("ravi", 2, ["knows"], "out", 10).types
    ['knows']
    """

    start: str
    depth: int
    types: list[str] | None
    direction: Direction
    max_entities: int


@dataclass(frozen=True, slots=True)
class EdgePage:
    """A page of an entity's relationships, by id; without ``types`` it has all types.

    >>> EdgePage("ravi", None, "out", "", 10).after
    ''
    """

    entity: str
    types: list[str] | None
    direction: Direction
    after: str
    limit: int


def draft_entities(entities: object) -> list[EntityDraft]:
    """Check entities, and return their drafts. Raises an error if an id occurs twice.

    >>> draft_entities([])
    []
    """
    drafts: dict[str, EntityDraft] = {}
    for at, entity in enumerate(check_list("entities", entities)):
        field = f"entities[{at}]"
        if not isinstance(entity, Entity):
            raise InvalidInputError(field, f"must be an Entity, not {type(entity).__name__}")
        key = _new_key(entity.id, f"{field}.id", drafts)
        label = check_id(f"{field}.label", entity.label)
        properties = encode_object(entity.properties, field=f"{field}.properties")
        names = entity_keys(key, entity.properties)
        subject = _subject(entity.subject, field)
        drafts[key] = EntityDraft(key, label, properties, names, subject)
    return list(drafts.values())


def draft_relationships(relationships: object) -> list[RelationshipDraft]:
    """Check relationships, and return their drafts. Raises an error if an id occurs twice.

    >>> draft_relationships([])
    []
    """
    drafts: dict[str, RelationshipDraft] = {}
    for at, one in enumerate(check_list("relationships", relationships)):
        field = f"relationships[{at}]"
        if not isinstance(one, Relationship):
            raise InvalidInputError(field, f"must be a Relationship, not {type(one).__name__}")
        key = _new_key(one.id, f"{field}.id", drafts)
        drafts[key] = RelationshipDraft(
            key,
            check_id(f"{field}.source_id", one.source_id),
            check_id(f"{field}.target_id", one.target_id),
            check_id(f"{field}.type", one.type),
            encode_object(one.properties, field=f"{field}.properties"),
            _subject(one.subject, field),
        )
    return list(drafts.values())


def _subject(given: object, field: str) -> str:
    return "" if given == "" else check_subject(given, f"{field}.subject")


def folded_names(names: object) -> list[str]:
    """Return the names in the folded form by which entities are found.

    >>> folded_names(["Project-X", "RAVI"])
    ['project x', 'ravi']
    """
    return [
        name_key(check_text(f"names[{at}]", name))
        for at, name in enumerate(check_list("names", names))
    ]


def _new_key(key: object, field: str, batch: Iterable[str]) -> str:
    checked = check_id(field, key)
    if checked in batch:
        raise InvalidInputError(field, f"duplicate id {checked!r} in one batch: pass each id once")
    return checked
