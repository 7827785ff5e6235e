"""Items, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.values.errors import VersionConflictError
from holdfast.values.filters import Filter
from holdfast.values.items import Item, ItemHit, ItemKey, Namespace


@dataclass(frozen=True, slots=True)
class ItemWrite:
    """An item to store; ``value`` is its JSON text, or ``None`` to delete it.

    ``expected`` is the version that the stored item must have: 0 for no item, ``None`` for any.
    ``subject`` is whom it is about; empty for its owner.
    """

    at: ItemKey
    value: str | None
    vectors: Sequence[list[float]]
    ttl_seconds: float | None
    expected: int | None
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """Which items to find: those whose namespace begins with ``prefix`` and that pass ``wanted``.

    ``refresh`` restarts the time to live of the returned items.
    """

    prefix: Namespace
    wanted: Filter
    vector: list[float] | None
    limit: int
    offset: int
    refresh: bool


@dataclass(frozen=True, slots=True)
class NamespaceQuery:
    """Which namespaces to list: those that begin with ``prefix`` and end with ``suffix``.

    ``None`` in either is any label. The namespaces are cut to ``max_depth`` labels, each listed
    once.
    """

    prefix: Sequence[str | None]
    suffix: Sequence[str | None]
    max_depth: int | None
    limit: int
    offset: int


class ItemStorage(Protocol):
    """The items of one tenant, for each owner. The caller checks all arguments.

    Items without an owner have the owner ``""``. An owner never sees items of another. An expired
    item is absent.
    """

    name: str
    """The engine's name in errors."""

    max_dimension: int
    """The highest dimension that a vector may have."""

    @abstractmethod
    async def get(
        self, owner: str, keys: Sequence[ItemKey], *, refresh: bool
    ) -> Sequence[Item | None]:
        """Return the items in the order of ``keys``, with ``None`` for an item that does not exist.

        No key is repeated. ``refresh`` restarts the time to live of the returned items.
        """

    @abstractmethod
    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        """Store and delete items in one step, and return their new versions; 0 if deleted.

        The keys differ and are sorted by namespace and key. Versions grow in that order. Raises
        ``outdated`` for the first item that is not at its expected version.
        """

    @abstractmethod
    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        """Return items by the cosine of their best vector, the closest first, then by version.

        The greatest version comes first, and items without a vector of that dimension last.
        Without a vector the order is that of versions alone.
        """

    @abstractmethod
    async def list_namespaces(self, owner: str, query: NamespaceQuery) -> list[Namespace]:
        """Return the namespaces that have items, by code points of their labels."""


def outdated(at: ItemKey, expected: int, actual: int) -> VersionConflictError:
    """Return the error of a ``put`` whose item has another version than expected.

    >>> print(outdated(ItemKey(("users", "ana"), "profile"), 1, 2))
    item 'users/ana/profile' is at version 2, not 1: read it again and retry
    """
    return VersionConflictError("item", item_name(at), expected=expected, actual=actual)


def item_name(at: ItemKey) -> str:
    """Return what errors call an item.

    >>> item_name(ItemKey(("users", "ana"), "profile"))
    'users/ana/profile'
    """
    return "/".join((*at.namespace, at.key))
