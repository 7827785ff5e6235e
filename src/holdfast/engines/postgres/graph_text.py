"""Converts entities and relationships to short JSON objects, many of which are decoded at once."""

from __future__ import annotations

import msgspec

from holdfast.spi.graph_draft import EntityDraft, RelationshipDraft
from holdfast.values.codec import encode_json
from holdfast.values.errors import CodecError
from holdfast.values.graph import Entity, Relationship

# The decoder creates the objects itself: creating them in Python costs as much as the walk.
_entities = msgspec.json.Decoder(list[Entity])
_relationships = msgspec.json.Decoder(list[Relationship])


def entity_text(draft: EntityDraft) -> str:
    """Return an entity as text, with exact properties.

    It contains all fields but an empty subject: decoding a field is faster than filling in its
    default.

    >>> entity_text(EntityDraft("ravi", "Person", '{"age":7}', ["ravi"]))
    '{"label":"Person","properties":{"age":7},"id":"ravi"}'
    """
    rest = (
        f'"properties":{draft.properties},"id":{encode_json(draft.id)}{_subject(draft.subject)}}}'
    )
    return f'{{"label":{encode_json(draft.label)},{rest}'


def relationship_text(draft: RelationshipDraft) -> str:
    """Return a relationship as text, with exact properties.

    >>> relationship_text(RelationshipDraft("r1", "ravi", "x", "knows", "{}"))
    '{"source_id":"ravi","target_id":"x","type":"knows","properties":{},"id":"r1"}'
    """
    ends = f'"source_id":{encode_json(draft.source)},"target_id":{encode_json(draft.target)}'
    rest = (
        f'"properties":{draft.properties},"id":{encode_json(draft.id)}{_subject(draft.subject)}}}'
    )
    return f'{{{ends},"type":{encode_json(draft.type)},{rest}'


def _subject(subject: str) -> str:
    return f',"subject":{encode_json(subject)}' if subject else ""


def read_entities(texts: str | None) -> list[Entity]:
    """Return entities from their texts, joined by commas; ``None`` gives an empty list.

    >>> read_entities('{"label":"Person","id":"ravi"}')
    [Entity(label='Person', properties={}, id='ravi', subject='')]
    """
    try:
        return _entities.decode(f"[{texts or ''}]")
    except msgspec.DecodeError as error:
        raise CodecError(f"a stored entity cannot be read: {error}") from error


def read_relationships(texts: str | None) -> list[Relationship]:
    """Return relationships from their texts, joined by commas; ``None`` gives an empty list.

    >>> read_relationships(None)
    []
    """
    try:
        return _relationships.decode(f"[{texts or ''}]")
    except msgspec.DecodeError as error:
        raise CodecError(f"a stored relationship cannot be read: {error}") from error
