"""The records of an archive: one line of JSON each, with the fields of its class in order.

A record holds what a client wrote and what the engine decided (ids, numbers, versions, times), but
nothing that can be rebuilt from it, such as a word index. Fields that hold JSON have the codec's
text. A vector is the base64 text of 32-bit floats, little-endian. Two engines that hold the
same data dump the same lines.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.values.boards import TaskStatus
from holdfast.values.keys import KeyScope
from holdfast.values.schedules import Missed


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One record; the base of all kinds."""


class DataKeyRecord(Record, frozen=True):
    """A data key of a sealed tenant, wrapped by a key that the archive does not have."""

    key_number: int
    subject: str
    kek: str
    wrapped: bytes
    created_at: datetime
    replaced: bool = False
    first_number: int = 0


class SessionRecord(Record, frozen=True):
    """A session. ``epoch`` and ``seq`` are the position of its last event."""

    id: str
    agent: str
    started_at: datetime
    epoch: int
    seq: int
    metadata: str = "{}"
    ended_at: datetime | None = None
    parent: str | None = None
    parent_at: int | None = None
    subject: str = ""


class DeletedSessionRecord(Record, frozen=True):
    """The last number of a deleted session, and whom it was about.

    A new session with its id continues after that number, and is about the same subject.
    """

    id: str
    seq: int
    subject: str = ""


class EventRecord(Record, frozen=True):
    """An event of a session log; ``vector`` is set only if its writer gave one."""

    session: str
    epoch: int
    seq: int
    id: str
    agent: str
    type: str
    occurred_at: datetime
    body: str
    run: str = ""
    vector: bytes | None = None


class StateRecord(Record, frozen=True):
    """A working state: the JSON text of each value, by key."""

    session: str
    version: int
    values: dict[str, str]
    ttl_seconds: float | None = None
    expires_at: datetime | None = None


class EarlierStateRecord(Record, frozen=True):
    """A version of a working state that is kept, the newest included."""

    session: str
    version: int
    values: dict[str, str]
    written_at: datetime


class FactRecord(Record, frozen=True):
    """A fact. The facts of one scope are in the order of their saves.

    ``fingerprint`` is the SHA-256 of what was saved with ``key``.
    """

    namespace: str
    agent: str
    id: str
    content: str
    created_at: datetime
    confidence: float
    metadata: str = "{}"
    topic: str = ""
    source: str = ""
    entities: tuple[str, ...] = ()
    key: str | None = None
    fingerprint: str | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None
    subject: str = ""


class DocumentRecord(Record, frozen=True):
    """A document of a collection; ``blocks`` is the JSON text of its content."""

    collection: str
    id: str
    blocks: str
    metadata: str
    vector: bytes
    subject: str = ""


class EntityRecord(Record, frozen=True):
    """An entity of the graph; of a sealed one also the digests by which it is found, sorted."""

    id: str
    label: str
    properties: str
    names: tuple[str, ...] = ()
    subject: str = ""


class RelationshipRecord(Record, frozen=True):
    """A relationship of the graph."""

    id: str
    source: str
    target: str
    type: str
    properties: str
    subject: str = ""


class BlobRecord(Record, frozen=True):
    """A ref to a blob; its bytes are a file of the archive, named by their SHA-256."""

    ref: str
    size_bytes: int
    content_type: str
    sha256: str
    created_at: datetime
    expires_at: datetime | None = None
    subject: str = ""


class CardRecord(Record, frozen=True):
    """A card of a board."""

    id: str
    title: str
    status: TaskStatus
    order: int
    retry_count: int = 0
    note: str = ""
    version: int = 1
    updated_at: datetime | None = None


class BoardRecord(Record, frozen=True):
    """A board with its cards. The boards of one conversation are in the order of creation."""

    conversation_id: str
    agent_id: str
    id: str
    agent_label: str
    max_retries: int
    parent_agent_id: str | None = None
    cards: tuple[CardRecord, ...] = ()


class ChannelRecord(Record, frozen=True):
    """A channel, and the highest number that an event of it ever had."""

    name: str
    newest: int


class ChannelEventRecord(Record, frozen=True):
    """An event of a channel."""

    channel: str
    number: int
    id: str
    event: str
    published_at: datetime
    expires_at: datetime


class ThreadRecord(Record, frozen=True):
    """A thread of checkpoints."""

    id: str
    ttl_seconds: float | None = None
    expires_at: datetime | None = None


class CheckpointRecord(Record, frozen=True):
    """A checkpoint: labels are JSON texts, ``versions`` names the version of each channel."""

    thread: str
    namespace: str
    id: str
    kind: str
    body: bytes
    metadata_kind: str
    metadata: bytes
    parent: str | None = None
    run: str = ""
    labels: dict[str, str] = {}
    versions: dict[str, str] = {}


class ChannelValueRecord(Record, frozen=True):
    """The value of a thread's channel at a version; without ``kind`` the channel is empty."""

    thread: str
    namespace: str
    channel: str
    version: str
    kind: str | None = None
    data: bytes | None = None


class CheckpointWriteRecord(Record, frozen=True):
    """A value that a task wrote after a checkpoint."""

    thread: str
    namespace: str
    id: str
    task: str
    index: int
    path: str
    channel: str
    kind: str
    data: bytes


class ItemRecord(Record, frozen=True):
    """An item."""

    owner: str
    namespace: tuple[str, ...]
    key: str
    version: int
    created_at: datetime
    updated_at: datetime
    value: str
    vectors: tuple[bytes, ...] = ()
    ttl_seconds: float | None = None
    expires_at: datetime | None = None
    subject: str = ""


class KeyRecord(Record, frozen=True):
    """An API key: its digest, never the key itself."""

    digest: str
    id: str
    owner: str
    name: str
    scope: KeyScope
    created_at: datetime
    revoked_at: datetime | None = None
    ttl_seconds: float | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class ScheduleRecord(Record, frozen=True):
    """A schedule; its ticks up to ``after`` have been handled."""

    owner: str
    id: str
    uid: str
    cron: str
    timezone: str
    agent: str
    message: str
    context_id: str
    metadata: str
    missed: Missed
    missed_limit: int
    grace_seconds: float
    max_attempts: int
    digest: str
    version: int
    paused: bool
    created_at: datetime
    updated_at: datetime
    after: datetime
    next_at: datetime | None = None
    last_run_at: datetime | None = None
    last_task_id: str = ""
