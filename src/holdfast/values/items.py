"""Items: JSON objects under a namespace and a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

Namespace: TypeAlias = tuple[str, ...]
"""The path of a namespace, from its root: one label or more."""


class ItemKey(NamedTuple):
    """The namespace and the key of an item.

    >>> ItemKey(("users", "ana"), "profile").key
    'profile'
    """

    namespace: Namespace
    key: str


@dataclass(frozen=True, slots=True)
class ItemPut:
    """An item to store, or with ``value=None`` to delete.

    >>> ItemPut(("users", "ana"), "profile", {"city": "Riga"}).ttl_seconds is None
    True
    """

    namespace: Namespace
    key: str
    value: dict[str, Any] | None
    vectors: Sequence[Sequence[float]] = ()
    """The vectors that a search compares: any number, of any dimension."""

    ttl_seconds: float | None = None
    """The item expires this long after its last put, or its last read with ``refresh``."""

    expected_version: int | None = None
    """The version that the stored item must have; 0 if there must be no item."""

    subject: str = ""
    """The id of the person whom it is about, if that is not its owner: ``state.erase(subject=)``
    deletes it. A put without one has none, as it replaces the whole item."""


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item.

    >>> when = datetime(2030, 1, 1)
    >>> Item(("users", "ana"), "profile", {"city": "Riga"}, 7, when, when).version
    7
    """

    namespace: Namespace
    key: str
    value: dict[str, Any]
    version: int
    """The value for ``expected_version``; it grows with every put."""

    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    subject: str = ""
    """Whom it is about, if not its owner."""


@dataclass(frozen=True, slots=True)
class ItemHit:
    """An item that a search found, and how close its best vector is: the cosine similarity.

    >>> when = datetime(2030, 1, 1)
    >>> ItemHit(Item(("notes",), "n1", {}, 1, when, when), 0.9).score
    0.9
    """

    item: Item
    score: float | None = None
    """``None`` if the search or the item has no vector, or they differ in dimension."""
