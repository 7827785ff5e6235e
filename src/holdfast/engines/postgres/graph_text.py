"""Entities and relationships as JSON objects, short, and many of them read in one go."""

from __future__ import annotations

import msgspec

from holdfast.spi.graph_draft import EntityDraft, RelationshipDraft
from holdfast.values.codec import encode_json
from holdfast.values.errors import CodecError
from holdfast.values.graph import Entity, Relationship

# The decoder makes the values itself: in Python that costs as much as the walk.
_entities = msgspec.json.Decoder(list[Entity])
_relationships = msgspec.json.Decoder(list[Relationship])


def entity_text(draft: EntityDraft) -> str:
    """An entity as text, its properties exact.

    All fields are in it: a default takes the decoder longer than a field that is there.

    >>> entity_text(EntityDraft("ravi", "Person", '{"age":7}', ["ravi"]))
    '{"label":"Person","properties":{"age":7},"id":"ravi"}'
    """
    rest = f'"properties":{draft.properties},"id":{encode_json(draft.id)}}}'
    return f'{{"label":{encode_json(draft.label)},{rest}'


def relationship_text(draft: RelationshipDraft) -> str:
    """A relationship as text, its properties exact.

    >>> relationship_text(RelationshipDraft("r1", "ravi", "x", "knows", "{}"))
    '{"source_id":"ravi","target_id":"x","type":"knows","properties":{},"id":"r1"}'
    """
    ends = f'"source_id":{encode_json(draft.source)},"target_id":{encode_json(draft.target)}'
    rest = f'"properties":{draft.properties},"id":{encode_json(draft.id)}}}'
    return f'{{{ends},"type":{encode_json(draft.type)},{rest}'


def read_entities(texts: str | None) -> list[Entity]:
    """Entities from their texts, joined by commas; none from none.

    >>> read_entities('{"label":"Person","id":"ravi"}')
    [Entity(label='Person', properties={}, id='ravi')]
    """
    try:
        return _entities.decode(f"[{texts or ''}]")
    except msgspec.DecodeError as error:
        raise CodecError(f"a stored entity cannot be read: {error}") from error


def read_relationships(texts: str | None) -> list[Relationship]:
    """Relationships from their texts, joined by commas; none from none.

    >>> read_relationships(None)
    []
    """
    try:
        return _relationships.decode(f"[{texts or ''}]")
    except msgspec.DecodeError as error:
        raise CodecError(f"a stored relationship cannot be read: {error}") from error
