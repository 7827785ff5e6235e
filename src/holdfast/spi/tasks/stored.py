"""What a ledger stores: checked entries whose JSON is the codec's text.

So every engine stores the same bytes and refuses the same input, and a caller never shares an
object with the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from holdfast.values.checks import check_time
from holdfast.values.codec import (
    blocks_from_json,
    decode_json,
    encode_json,
    encode_object,
    message_to_payload,
)
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
from holdfast.values.sealed import part_piece, sealed_digest, text_piece
from holdfast.values.stored_messages import message_from_body
from holdfast.values.tasks.events import (
    ArtifactChunk,
    StepKey,
    StepRecord,
)
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import Feedback, content_digest, stored_digest


def text_bytes(text: str) -> int:
    """Return the length of a text in UTF-8 bytes.

    >>> text_bytes("é")
    2
    """
    return len(text) if text.isascii() else len(text.encode())


def fitting(sizes: Iterable[int], max_bytes: int | None) -> int:
    """Return how many items, in order, fit into ``max_bytes``. The first always counts.

    >>> fitting([3, 3, 3], 6), fitting([9, 1], 6), fitting([9, 1], None)
    (2, 1, 2)
    """
    count, total = 0, 0
    for size in sizes:
        total += size
        if max_bytes is not None and count and total > max_bytes:
            break
        count += 1
    return count


class StoredMessage(NamedTuple):
    """A message as the text of its payload; ``seq`` is that of its event, once it is stored.

    >>> StoredMessage.of(ChatMessage.user("hello"))._replace(seq=3).load().seq
    3
    """

    id: str
    created_at: datetime
    payload: str
    seq: int | None = None

    @classmethod
    def of(cls, message: ChatMessage, *, field: str = "message") -> StoredMessage:
        """Check a message and encode it."""
        payload = encode_json(message_to_payload(message, field=field), field=field)
        return cls(message.id, check_time(f"{field}.created_at", message.created_at), payload)

    def digest(self) -> str:
        """Return a digest of the content. The order of JSON keys does not change it."""
        return sealed_digest(part_piece(self.payload)) or stored_digest(self.payload)

    def same_body(self, other: StoredMessage) -> bool:
        """Return whether both have the same content, whatever the order of JSON keys."""
        return self.payload == other.payload or self.digest() == other.digest()

    def load(self) -> ChatMessage:
        """Return a new message."""
        return message_from_body(self.payload, id=self.id, created_at=self.created_at, seq=self.seq)


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step with its result as text.

    >>> now = datetime(2030, 1, 1)
    >>> StoredStep(StepKey("fetch"), "[3]", now, "", fence=1, chunks=0).load("t1").result
    [3]
    """

    key: StepKey
    result: str
    stored_at: datetime
    digest: str
    fence: int
    chunks: int
    started_at: datetime | None = None

    def load(self, task_id: str) -> StepRecord:
        """Return a new step record."""
        return StepRecord(
            task_id,
            self.key,
            decode_json(self.result),
            self.stored_at,
            digest=self.digest,
            fence=self.fence,
            chunks=self.chunks,
            started_at=self.started_at,
        )


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of an artifact with its parts as text.

    >>> StoredChunk("summary.md", "[]").load().append
    False
    """

    artifact_id: str
    parts: str
    append: bool = False
    last_chunk: bool = False
    name: str = ""
    metadata: str = "{}"
    step: StepKey | None = None
    fence: int = 0

    def load(self) -> ArtifactChunk:
        """Return a new chunk."""
        return ArtifactChunk(
            self.artifact_id,
            blocks_from_json(decode_json(self.parts)),
            append=self.append,
            last_chunk=self.last_chunk,
            name=self.name,
            metadata=decode_json(self.metadata),
            step=self.step,
            fence=self.fence,
        )


@dataclass(frozen=True, slots=True)
class StoredPush:
    """A push config with its authentication as text.

    >>> StoredPush.of(PushConfig("p1", "https://example.org", token="secret"))
    StoredPush(id='p1', url='https://example.org')
    """

    id: str
    url: str
    token: str = field(repr=False)
    authentication: str = field(repr=False)

    @classmethod
    def of(cls, config: object) -> StoredPush:
        """Check a config and encode it."""
        if not isinstance(config, PushConfig):
            raise InvalidInputError("push", f"must be a PushConfig, not {type(config).__name__}")
        authentication = encode_object(config.authentication, field="push.authentication")
        return cls(config.id, config.url, config.token, authentication)

    def load(self) -> PushConfig:
        """Return a new config."""
        return PushConfig(self.id, self.url, self.token, decode_json(self.authentication))


@dataclass(frozen=True, slots=True)
class StoredFeedback:
    """Feedback with its metadata as text.

    >>> StoredFeedback("f1", "good", 5, "{}", datetime(2030, 1, 1)).load("t1").rating
    5
    """

    id: str
    text: str
    rating: int | None
    metadata: str
    created_at: datetime

    def digest(self) -> str:
        """Return a digest of the content. The order of JSON keys does not change it."""
        content = [self.text, self.rating, decode_json(self.metadata)]
        return sealed_digest(text_piece(self.text)) or content_digest(content)

    def load(self, task_id: str) -> Feedback:
        """Return new feedback."""
        return Feedback(
            self.id,
            task_id,
            self.text,
            self.created_at,
            rating=self.rating,
            metadata=decode_json(self.metadata),
        )
