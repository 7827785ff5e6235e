"""Wrapped data keys, in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.data_keys import DataKey, DataKeyStorage


@dataclass
class _Data:
    keys: dict[int, DataKey] = field(default_factory=dict)


class InMemoryDataKeys(DataKeyStorage):
    """Stores the wrapped data keys of one tenant in a dict.

    >>> keys = InMemoryDataKeys(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._keys = engine.table(tenant, _Data).keys

    async def add(self, key: DataKey) -> DataKey:
        """Store a key unless its subject has one. Returns the key that the subject has now."""
        found = await self.of_subject(key.subject)
        return found or self._keys.setdefault(key.number, key)

    async def of_subject(self, subject: str) -> DataKey | None:
        """Return the key of a subject."""
        return next((one for one in self._keys.values() if one.subject == subject), None)

    async def of_numbers(self, numbers: Sequence[int]) -> Sequence[DataKey]:
        """Return keys by their numbers."""
        return [self._keys[one] for one in numbers if one in self._keys]

    async def page(self, after: int, limit: int) -> Sequence[DataKey]:
        """Return a page of keys, ascending by number."""
        return [self._keys[one] for one in sorted(self._keys) if one > after][:limit]

    async def rewrap(self, key: DataKey, was: str) -> bool:
        """Replace the KEK and the wrapped bytes of a key, if the KEK ``was`` wraps it."""
        found = self._keys.get(key.number)
        if found is None or found.kek != was:
            return False
        self._keys[key.number] = key
        return True

    async def tenants(self, kek: str, after: str, limit: int) -> Sequence[str]:
        """Return tenants that have keys which another KEK than ``kek`` wraps."""
        found = self._engine.by_tenant(_Data).items()
        names = (name for name, data in found if any(one.kek != kek for one in data.keys.values()))
        return [name for name in sorted(names) if name > after][:limit]

    def shred(self, erases: Callable[[str], bool]) -> Sequence[int]:
        """Delete the keys of the chosen subjects, for an erasure. Returns their numbers."""
        gone = [one.number for one in self._keys.values() if erases(one.subject)]
        for number in gone:
            del self._keys[number]
        return sorted(gone)
