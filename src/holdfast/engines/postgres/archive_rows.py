"""Converts rows of the tables to records of an archive, and records to columns for an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from holdfast.engines.postgres.escape import escape, unescape
from holdfast.engines.postgres.filter_sql import filterable
from holdfast.engines.postgres.index_key import index_key
from holdfast.engines.postgres.packed_vectors import unpack
from holdfast.engines.postgres.payloads import stored_filterable
from holdfast.spi.archive import records as of
from holdfast.spi.archive import task_records as of_tasks
from holdfast.spi.archive.kinds import BY_NAME
from holdfast.spi.archive.vectors import unpack_vector
from holdfast.spi.tasks.stored import StoredFeedback
from holdfast.values.boards import TaskStatus
from holdfast.values.codec import decode_json, encode_json, encode_numbers
from holdfast.values.graph import Entity, Relationship
from holdfast.values.sealed import is_sealed
from holdfast.values.tasks.records import stored_digest
from holdfast.values.text import tokenize

_entity = msgspec.json.Decoder(Entity)
_relationship = msgspec.json.Decoder(Relationship)


def _packed(sent: bytes) -> bytes:
    return unpack(sent).astype("<f4").tobytes()


def _texts(stored: str) -> dict[str, str]:
    return dict(sorted((unescape(key), text) for key, text in _object(stored)))


def _object(stored: str) -> Any:
    return decode_json(stored).items()


def _cards(stored: list[list[Any]]) -> tuple[of.CardRecord, ...]:
    return tuple(
        of.CardRecord(
            *(key, decode_json(title), TaskStatus(status), int(order), int(tries)),
            *(decode_json(note), int(version), at and datetime.fromisoformat(at)),
        )
        for key, title, status, order, tries, note, version, at in stored
    )


_JSON = decode_json
_PLAIN = (bytes, datetime)
_READ: dict[str, dict[str, Callable[[Any], Any]]] = {
    "events": {"vector": _packed},
    "states": {"values": _texts},
    "earlier_states": {"values": _texts},
    "saved_states": {"values": lambda text: dict(sorted(_object(text)))},
    "earlier_saved_states": {"values": lambda text: dict(sorted(_object(text)))},
    "facts": {"content": _JSON, "topic": _JSON, "source": _JSON, "entities": tuple},
    "documents": {"vector": _packed},
    "boards": {"agent_label": _JSON, "cards": _cards},
    "checkpoints": {"labels": _texts, "versions": lambda text: dict(sorted(_object(text)))},
    "checkpoint_writes": {"path": unescape},
    "items": {"namespace": tuple, "vectors": lambda all_: tuple(map(_packed, all_))},
    "tasks": {"note": _JSON},
    "task_events": {"note": _JSON, "digest": _JSON, "name": _JSON},
    "feedback": {"text": _JSON},
    "push_configs": {"url": _JSON, "token": _JSON},
    "deliveries": {"last_error": _JSON},
    "keys": {"name": _JSON},
}
"""Functions that convert a column's value to a record's field, where the two differ."""


SAVED = {"states": "saved_states", "earlier_states": "earlier_saved_states"}
"""For kinds that a hybrid engine stores in its own tables: the names of those statements."""

_KIND_OF = {statement: kind for kind, statement in SAVED.items()}


def to_record(kind: str, row: Mapping[str, Any]) -> of.Record:
    """Return the archive record of a table row.

    ::

        record = to_record("states", row)
    """
    if kind == "entities":
        entity = _entity.decode(row["body"])
        names = tuple(row["names"]) if is_sealed(entity.properties) else ()
        text = encode_json(entity.properties)
        return of.EntityRecord(entity.id, entity.label, text, names, entity.subject)
    if kind == "relationships":
        one = _relationship.decode(row["body"])
        text = encode_json(one.properties)
        ends = (one.id, one.source_id, one.target_id)
        return of.RelationshipRecord(*ends, one.type, text, one.subject)
    fields = dict(row)
    for name, read in _READ.get(kind, {}).items():
        if fields[name] is not None:
            fields[name] = read(fields[name])
    known = BY_NAME[_KIND_OF.get(kind, kind)]
    record = msgspec.convert(fields, known.record, builtin_types=_PLAIN)
    return of_tasks.meaningful(record) if isinstance(record, of_tasks.TaskRecord) else record


def _written(text: str | None) -> str | None:
    return None if text is None else encode_json(text)


def columns(kind: str, records: Sequence[Any], *, tenant: str) -> list[list[Any]]:
    """Return the values of records by column, in the order of the load statement's parameters.

    ::

        columns("states", records, tenant="acme")
    """
    rows = [_ROWS[kind](one, tenant) for one in records]
    return [list(column) for column in zip(*rows, strict=True)]


def words(record: of.FactRecord, language: str) -> tuple[int, str, str]:
    """Return the length of a fact's text in words, its lexemes and their counts as JSON."""
    found = Counter(map(index_key, tokenize(record.content, language=language)))
    return found.total(), encode_json(list(found)), encode_json(list(found.values()))


def cards(records: Sequence[of.BoardRecord]) -> list[list[Any]]:
    """Return the cards of boards by column."""
    rows = [
        (
            *(board.id, card.id, encode_json(card.title), card.status.value),
            *(card.order, card.retry_count, encode_json(card.note)),
            *(card.version, card.updated_at),
        )
        for board in records
        for card in board.cards
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def _event(one: of.EventRecord, _: str) -> Sequence[Any]:
    return (
        *(one.session, one.epoch, one.seq, one.id, one.agent, one.type, one.occurred_at),
        *(one.body, one.run, stored_filterable(one.type, one.body)),
    )


def _state(one: of.StateRecord, _: str) -> Sequence[Any]:
    text = encode_json({escape(key): value for key, value in one.values.items()})
    return (one.session, one.version, text, one.ttl_seconds, one.expires_at)


def _saved_state(one: of.StateRecord, _: str) -> Sequence[Any]:
    return (one.session, one.version, encode_json(one.values), one.ttl_seconds, one.expires_at)


def _earlier_state(one: of.EarlierStateRecord, _: str) -> Sequence[Any]:
    text = encode_json({escape(key): value for key, value in one.values.items()})
    return (one.session, one.version, text, one.written_at)


def _earlier_saved_state(one: of.EarlierStateRecord, _: str) -> Sequence[Any]:
    return (one.session, one.version, encode_json(one.values), one.written_at)


def _fact(one: of.FactRecord, _: str) -> Sequence[Any]:
    return (
        *(one.namespace, one.agent, one.id, encode_json(one.content), one.created_at),
        *(one.confidence, one.metadata, encode_json(one.topic), encode_json(one.source)),
        *(encode_json(list(one.entities)), one.key, one.fingerprint, one.expires_at),
        *(one.superseded_by, one.subject),
    )


def _board(one: of.BoardRecord, _: str) -> Sequence[Any]:
    return (
        *(one.conversation_id, one.agent_id, one.id, encode_json(one.agent_label)),
        *(one.max_retries, one.parent_agent_id),
    )


def _checkpoint(one: of.CheckpointRecord, _: str) -> Sequence[Any]:
    labels = {escape(key): text for key, text in one.labels.items()}
    return (
        *(one.thread, one.namespace, one.id, one.kind, one.body, one.metadata_kind),
        *(one.metadata, one.parent, one.run, encode_json(labels), encode_json(one.versions)),
    )


def _write(one: of.CheckpointWriteRecord, _: str) -> Sequence[Any]:
    return (
        *(one.thread, one.namespace, one.id, one.task, one.index, escape(one.path)),
        *(one.channel, one.kind, one.data),
    )


def _item(one: of.ItemRecord, tenant: str) -> Sequence[Any]:
    vectors = ",".join(f'"{encode_numbers(unpack_vector(data))}"' for data in one.vectors)
    return (
        *(one.owner, encode_json(list(one.namespace)), one.key, one.version, one.created_at),
        *(one.updated_at, one.value, f"{{{vectors}}}", one.ttl_seconds, one.expires_at),
        *(filterable(one.value, tenant=tenant, collection=one.owner), one.subject),
    )


def _task(one: of_tasks.TaskRecord, _: str) -> Sequence[Any]:
    return (
        *(one.id, one.owner, one.context_id, one.agent, one.created_at, one.state.value),
        *(one.updated_at, one.max_attempts, one.version, one.transitions, one.metadata),
        *(one.submit_key, one.submit_digest, one.retry_of, encode_json(one.note)),
        *(one.status_seq, one.fence, one.attempts, one.worker, one.lease_expires_at),
        *(one.lease_seconds, one.run_after, one.due_at, one.cancel_requested),
        *(one.pause_requested, one.ask_kind, one.ask_name, one.ask_occurrence, one.ask_form),
        *(one.result, one.parent_id, one.awaited, one.waits_for, one.waits_topic),
        *(one.priority, one.key, one.copied, one.handler_version, one.app_version),
    )


def _task_event(one: of_tasks.TaskEventRecord, _: str) -> Sequence[Any]:
    digest = _written(one.digest)
    if one.kind == "message" and one.body is not None:
        digest = stored_digest(one.body)
    return (
        *(one.task_id, one.seq, one.kind, one.at, one.actor.value, one.fence, one.by_name),
        *(one.number, one.from_state and one.from_state.value),
        *(one.to_state and one.to_state.value, one.worker, one.attempt, one.run_after),
        *(_written(one.note), one.request, one.message_id, one.written_at, one.place),
        *(one.step_kind, one.step_name, one.step_occurrence, one.started_at, one.chunks),
        *(digest, one.artifact_id, one.append, one.last_chunk, _written(one.name)),
        *(one.metadata, one.body, one.app_version),
    )


def _feedback(one: of_tasks.FeedbackRecord, _: str) -> Sequence[Any]:
    given = StoredFeedback(one.id, one.text, one.rating, one.metadata, one.created_at)
    return (
        *(one.task_id, one.id, encode_json(one.text), one.metadata, one.created_at),
        *(one.rating, given.digest()),
    )


def _push(one: of_tasks.PushConfigRecord, _: str) -> Sequence[Any]:
    return (one.task_id, one.id, encode_json(one.url), encode_json(one.token), one.authentication)


def _delivery(one: of_tasks.DeliveryRecord, _: str) -> Sequence[Any]:
    return (
        *(one.task_id, one.config_id, one.seq, one.due_at, one.attempts),
        *(encode_json(one.last_error), one.dead),
    )


def _schedule(one: of.ScheduleRecord, _: str) -> Sequence[Any]:
    fields = msgspec.structs.asdict(one) | {"missed": one.missed.value}
    return tuple(fields.values())


def _key(one: of.KeyRecord, _: str) -> Sequence[Any]:
    fields = msgspec.structs.asdict(one)
    return tuple((fields | {"name": encode_json(one.name), "scope": one.scope.value}).values())


def _as_it_is(one: of.Record, _: str) -> Sequence[Any]:
    return msgspec.structs.astuple(one)


_ROWS: dict[str, Callable[[Any, str], Sequence[Any]]] = {
    "data_keys": _as_it_is,
    "sessions": _as_it_is,
    "deleted_sessions": _as_it_is,
    "events": _event,
    "states": _state,
    "saved_states": _saved_state,
    "earlier_states": _earlier_state,
    "earlier_saved_states": _earlier_saved_state,
    "facts": _fact,
    "boards": _board,
    "channels": _as_it_is,
    "channel_events": _as_it_is,
    "threads": _as_it_is,
    "checkpoints": _checkpoint,
    "channel_values": _as_it_is,
    "checkpoint_writes": _write,
    "items": _item,
    "contexts": _as_it_is,
    "tasks": _task,
    "task_events": _task_event,
    "feedback": _feedback,
    "inbox": _as_it_is,
    "push_configs": _push,
    "deliveries": _delivery,
    "cleanup": _as_it_is,
    "schedules": _schedule,
    "keys": _key,
}
