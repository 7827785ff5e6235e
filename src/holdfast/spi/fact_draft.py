"""A checked fact, to be stored in long-term memory, and the errors of a conflicting save."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from holdfast.values.codec import encode_json
from holdfast.values.errors import ConflictError


@dataclass(frozen=True, slots=True)
class FactDraft:
    """What an engine stores for a fact, before it has an id; ``metadata`` is JSON text.

    >>> FactDraft("low tide", topic="sea", ttl_seconds=60).lifetime
    datetime.timedelta(seconds=60)
    """

    content: str
    metadata: str = "{}"
    topic: str = ""
    confidence: float = 1.0
    source: str = ""
    entities: tuple[str, ...] = ()
    ttl_seconds: float | None = None
    supersedes: str | None = None
    key: str | None = None
    subject: str = ""
    """Whom the fact is about, if not its owner. A fact that supersedes it by an update keeps it."""

    @property
    def fingerprint(self) -> str:
        """All fields except the key. Two saves with one key must have the same fingerprint.

        >>> FactDraft("a", key="k").fingerprint == FactDraft("a").fingerprint
        True
        """
        said = [self.content, self.metadata, self.topic, self.confidence, self.source]
        about = [self.subject] if self.subject else []
        return encode_json([*said, [*self.entities], self.ttl_seconds, self.supersedes, *about])

    @property
    def lifetime(self) -> timedelta | None:
        """How long the fact is kept; ``None`` means forever.

        >>> FactDraft("a").lifetime is None
        True
        """
        return None if self.ttl_seconds is None else timedelta(seconds=self.ttl_seconds)


@dataclass(frozen=True, slots=True)
class FactChange:
    """An update, which supersedes a fact. A field that is ``None`` keeps the old fact's value.

    >>> FactChange("m1", "high tide").applied_to(FactDraft("low tide", topic="sea")).topic
    'sea'
    """

    supersedes: str
    content: str
    metadata: str | None = None
    topic: str | None = None
    confidence: float | None = None
    source: str | None = None
    entities: tuple[str, ...] | None = None
    ttl_seconds: float | None = None
    """``None`` means that the new fact expires when the old one would have."""

    key: str | None = None

    @property
    def fingerprint(self) -> str:
        """All fields except the key; it never equals the fingerprint of a draft.

        >>> FactChange("m1", "a", key="k").fingerprint == FactChange("m1", "a").fingerprint
        True
        """
        said = [self.content, self.metadata, self.topic, self.confidence, self.source]
        entities = None if self.entities is None else [*self.entities]
        return encode_json(["update", *said, entities, self.ttl_seconds, self.supersedes])

    @property
    def lifetime(self) -> timedelta | None:
        """How long the new fact is kept; ``None`` means as long as the old one.

        >>> FactChange("m1", "a", ttl_seconds=60).lifetime
        datetime.timedelta(seconds=60)
        """
        return None if self.ttl_seconds is None else timedelta(seconds=self.ttl_seconds)

    def applied_to(self, old: FactDraft) -> FactDraft:
        """Return the draft of the new fact.

        >>> FactChange("m1", "a", topic="").applied_to(FactDraft("b", topic="sea")).topic
        ''
        """
        return FactDraft(
            content=self.content,
            metadata=old.metadata if self.metadata is None else self.metadata,
            topic=old.topic if self.topic is None else self.topic,
            confidence=old.confidence if self.confidence is None else self.confidence,
            source=old.source if self.source is None else self.source,
            entities=old.entities if self.entities is None else self.entities,
            ttl_seconds=self.ttl_seconds,
            supersedes=self.supersedes,
            key=self.key,
            subject=old.subject,
        )


def used_before(id: str, key: str) -> ConflictError:
    """Return the error of a save whose key was used for another memory.

    >>> str(used_before("m1", "k1"))
    "idempotency key 'k1' was used for another memory: use a new key"
    """
    return ConflictError(
        "memory", id, f"idempotency key {key!r} was used for another memory: use a new key"
    )


def superseded_before(id: str, successor: str) -> ConflictError:
    """Return the error of a save that supersedes an already superseded memory.

    >>> str(superseded_before("m1", "m2"))
    "memory 'm1' is superseded already: supersede 'm2'"
    """
    return ConflictError(
        "memory", id, f"memory {id!r} is superseded already: supersede {successor!r}"
    )
