"""Converts the data of the smaller stores in memory to archive records, and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.engines.inmemory.boards import _Board
from holdfast.engines.inmemory.boards import _Data as _BoardData
from holdfast.engines.inmemory.channel import _Channel
from holdfast.engines.inmemory.channel import _Data as _ChannelData
from holdfast.engines.inmemory.data_keys import _Data as _DataKeys
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.graph import _Data as _GraphData
from holdfast.engines.inmemory.graph import _Edge, _Node
from holdfast.engines.inmemory.items import _Data as _ItemData
from holdfast.engines.inmemory.items import _Row as _Item
from holdfast.engines.inmemory.keys import _Data as _KeyData
from holdfast.engines.inmemory.schedules import ScheduleData, ScheduleRow
from holdfast.engines.inmemory.vector import _Collection
from holdfast.engines.inmemory.vector import _Data as _VectorData
from holdfast.engines.inmemory.vector import _Row as _Document
from holdfast.spi.archive import records as of
from holdfast.spi.archive.vectors import pack_vector, unpack_vector
from holdfast.spi.channels import StoredEvent
from holdfast.spi.data_keys import DataKey
from holdfast.spi.schedules import ScheduleDraft, ScheduleKey, StoredSchedule
from holdfast.values.boards import Task, TaskList
from holdfast.values.codec import decode_json
from holdfast.values.errors import NotFoundError
from holdfast.values.graph import entity_keys
from holdfast.values.identity import AgentId
from holdfast.values.items import ItemKey
from holdfast.values.keys import ApiKey
from holdfast.values.sealed import is_sealed


def dump_data_keys(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.DataKeyRecord]:
    """Yield the wrapped data keys."""
    del at
    data = engine.table(tenant, _DataKeys)
    for number, key in sorted(data.keys.items()):
        yield of.DataKeyRecord(
            *(number, key.subject, key.kek, key.wrapped, data.made[number]),
            replaced=data.currents.get(key.subject) != number,
            first_number=key.first,
        )


def load_data_key(engine: InMemory, tenant: str, one: of.DataKeyRecord) -> None:
    """Store a wrapped data key."""
    data = engine.table(tenant, _DataKeys)
    if one.key_number in data.keys:
        return
    key = DataKey(one.key_number, one.subject, one.kek, one.wrapped, one.first_number)
    data.keys[key.number], data.made[key.number] = key, one.created_at
    if not one.replaced:
        data.currents[key.subject] = key.number


def dump_documents(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.DocumentRecord]:
    """Yield the documents of all collections."""
    del at
    for name, collection in sorted(engine.table(tenant, _VectorData).collections.items()):
        for key, row in sorted(collection.rows.items()):
            yield of.DocumentRecord(
                *(name, key, row.content, row.metadata, pack_vector(row.vector), row.subject)
            )


def load_document(engine: InMemory, tenant: str, one: of.DocumentRecord) -> None:
    """Store a document."""
    vector = unpack_vector(one.vector)
    collections = engine.table(tenant, _VectorData).collections
    held = collections.setdefault(one.collection, _Collection(len(vector)))
    held.view = None
    held.rows.setdefault(one.id, _Document(one.blocks, one.metadata, vector, one.subject))


def dump_entities(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.EntityRecord]:
    """Yield the entities."""
    del at
    for key, node in sorted(engine.table(tenant, _GraphData).nodes.items()):
        names = tuple(sorted(node.keys)) if is_sealed(decode_json(node.properties)) else ()
        yield of.EntityRecord(key, node.label, node.properties, names, node.subject)


def load_entity(engine: InMemory, tenant: str, one: of.EntityRecord) -> None:
    """Store an entity, so that it is found by its names."""
    data = engine.table(tenant, _GraphData)
    if one.id in data.nodes:
        return
    names = list(one.names) or entity_keys(one.id, decode_json(one.properties))
    data.nodes[one.id] = _Node(one.label, one.properties, names, one.subject)
    for name in names:
        data.by_key.setdefault(name, set()).add(one.id)


def dump_relationships(
    engine: InMemory, tenant: str, at: datetime
) -> Iterator[of.RelationshipRecord]:
    """Yield the relationships."""
    del at
    for key, edge in sorted(engine.table(tenant, _GraphData).edges.items()):
        yield of.RelationshipRecord(
            key, edge.source, edge.target, edge.type, edge.properties, edge.subject
        )


def load_relationship(engine: InMemory, tenant: str, one: of.RelationshipRecord) -> None:
    """Store a relationship between existing entities."""
    data = engine.table(tenant, _GraphData)
    for end in (one.source, one.target):
        if end not in data.nodes:
            raise NotFoundError("entity", end)
    if one.id not in data.edges:
        data.edges[one.id] = _Edge(one.source, one.target, one.type, one.properties, one.subject)
        data.nodes[one.source].leaving.add(one.id)
        data.nodes[one.target].reaching.add(one.id)


def dump_boards(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.BoardRecord]:
    """Yield the boards by conversation, in the order of creation."""
    del at
    for _, boards in sorted(engine.table(tenant, _BoardData).conversations.items()):
        for board in boards.values():
            facts = board.facts
            cards = sorted(board.cards.values(), key=lambda card: (card.order, card.id))
            yield of.BoardRecord(
                facts.conversation_id,
                facts.agent_id,
                facts.id,
                facts.agent_label,
                facts.max_retries,
                parent_agent_id=facts.parent_agent_id,
                cards=tuple(
                    of.CardRecord(
                        card.id,
                        card.title,
                        card.status,
                        card.order,
                        card.retry_count,
                        card.note,
                        card.version,
                        card.updated_at,
                    )
                    for card in cards
                ),
            )


def load_board(engine: InMemory, tenant: str, one: of.BoardRecord) -> None:
    """Store a board with its cards."""
    data = engine.table(tenant, _BoardData)
    siblings = data.conversations.setdefault(one.conversation_id, {})
    if one.id in data.boards or one.agent_id in siblings:
        return
    cards = {
        card.id: Task(
            card.id,
            card.title,
            card.status,
            card.order,
            card.retry_count,
            card.note,
            card.version,
            card.updated_at,
        )
        for card in one.cards
    }
    facts = TaskList(
        one.id,
        one.conversation_id,
        list(cards.values()),
        one.max_retries,
        one.agent_id,
        one.agent_label,
        one.parent_agent_id,
    )
    siblings[one.agent_id] = data.boards[one.id] = _Board(facts, cards)


def dump_channels(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.ChannelRecord]:
    """Yield the channels that ever had an event."""
    del at
    for name, channel in sorted(engine.table(tenant, _ChannelData).channels.items()):
        if channel.last:
            yield of.ChannelRecord(name, channel.last)


def load_channel(engine: InMemory, tenant: str, one: of.ChannelRecord) -> None:
    """Store the counter of a channel."""
    channel = engine.table(tenant, _ChannelData).channels.setdefault(one.name, _Channel())
    channel.last = max(channel.last, one.newest)


def dump_channel_events(
    engine: InMemory, tenant: str, at: datetime
) -> Iterator[of.ChannelEventRecord]:
    """Yield the events of channels that have not expired."""
    for name, channel in sorted(engine.table(tenant, _ChannelData).channels.items()):
        for number, event in sorted(channel.events.items()):
            if channel.expiries[number] > at:
                yield of.ChannelEventRecord(
                    name,
                    number,
                    event.id,
                    event.text,
                    event.published_at,
                    channel.expiries[number],
                )


def load_channel_event(engine: InMemory, tenant: str, one: of.ChannelEventRecord) -> None:
    """Store an event of a channel."""
    channel = engine.table(tenant, _ChannelData).channels.get(one.channel)
    if channel is None:
        raise NotFoundError("channel", one.channel)
    if one.number not in channel.events:
        event = StoredEvent(one.id, one.number, one.event, one.published_at)
        channel.events[one.number] = event
        channel.expiries[one.number] = one.expires_at
        channel.numbers[one.id] = one.number


def dump_items(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.ItemRecord]:
    """Yield the items that have not expired."""
    for owner, rows in sorted(engine.table(tenant, _ItemData).owners.items()):
        for key, row in sorted(rows.items()):
            if row.expires_at is None or row.expires_at > at:
                yield of.ItemRecord(
                    owner,
                    key.namespace,
                    key.key,
                    row.version,
                    row.created_at,
                    row.updated_at,
                    row.value,
                    tuple(map(pack_vector, row.vectors)),
                    row.ttl_seconds,
                    row.expires_at,
                    row.subject,
                )


def load_item(engine: InMemory, tenant: str, one: of.ItemRecord) -> None:
    """Store an item. Later versions are greater than its version."""
    data = engine.table(tenant, _ItemData)
    stored = _Item(
        one.value,
        [unpack_vector(vector) for vector in one.vectors],
        one.version,
        one.created_at,
        one.updated_at,
        one.ttl_seconds,
        one.expires_at,
        one.subject,
    )
    data.owners.setdefault(one.owner, {}).setdefault(ItemKey(one.namespace, one.key), stored)
    data.last_version = max(data.last_version, one.version)


def dump_keys(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.KeyRecord]:
    """Yield the API keys."""
    del at
    for digest, key in sorted(engine.table(tenant, _KeyData).by_digest.items()):
        yield of.KeyRecord(
            digest,
            key.id,
            key.owner,
            key.name,
            key.scope,
            key.created_at,
            key.revoked_at,
            key.ttl_seconds,
            key.expires_at,
            key.last_used_at,
        )


def load_key(engine: InMemory, tenant: str, one: of.KeyRecord) -> None:
    """Store an API key, which then belongs to this tenant."""
    key = ApiKey(
        one.id,
        tenant,
        one.owner,
        one.created_at,
        name=one.name,
        revoked_at=one.revoked_at,
        scope=one.scope,
        ttl_seconds=one.ttl_seconds,
        expires_at=one.expires_at,
        last_used_at=one.last_used_at,
    )
    engine.table(tenant, _KeyData).by_digest.setdefault(one.digest, key)


def dump_schedules(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.ScheduleRecord]:
    """Yield the schedules."""
    del at
    for _, row in sorted(engine.table(tenant, ScheduleData).rows.items()):
        stored, draft = row.stored, row.stored.draft
        yield of.ScheduleRecord(
            draft.owner,
            draft.id,
            draft.uid,
            draft.cron,
            draft.timezone,
            str(draft.agent),
            draft.message,
            draft.session_id,
            draft.metadata,
            draft.missed,
            draft.missed_limit,
            draft.grace_seconds,
            draft.max_attempts,
            draft.digest,
            stored.version,
            stored.paused,
            stored.created_at,
            stored.updated_at,
            stored.after,
            next_at=row.next_at,
            last_run_at=stored.last_run_at,
            last_task_id=stored.last_task_id,
        )


def load_schedule(engine: InMemory, tenant: str, one: of.ScheduleRecord) -> None:
    """Store a schedule."""
    draft = ScheduleDraft(
        one.id,
        one.owner,
        one.cron,
        one.timezone,
        AgentId.parse(one.agent),
        one.message,
        one.context_id,
        one.metadata,
        one.missed,
        one.missed_limit,
        one.grace_seconds,
        one.max_attempts,
        one.digest,
        one.uid,
    )
    stored = StoredSchedule(
        draft,
        one.version,
        one.paused,
        one.after,
        one.created_at,
        one.updated_at,
        one.last_run_at,
        one.last_task_id,
    )
    rows = engine.table(tenant, ScheduleData).rows
    rows.setdefault(ScheduleKey(one.owner, one.id), ScheduleRow(stored, one.next_at))
