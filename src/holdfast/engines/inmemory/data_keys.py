"""Wrapped data keys, in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.data_keys import DataKey, DataKeyStorage


@dataclass
class _Data:
    keys: dict[int, DataKey] = field(default_factory=dict)
    made: dict[int, datetime] = field(default_factory=dict)
    currents: dict[str, int] = field(default_factory=dict)


class InMemoryDataKeys(DataKeyStorage):
    """Stores the wrapped data keys of one tenant in a dict.

    >>> keys = InMemoryDataKeys(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)
        self._keys = self._data.keys

    async def add(self, key: DataKey) -> DataKey:
        """Store a key unless its subject has one. Returns the key that the subject has now."""
        if key.subject not in self._data.currents:
            self._store(key)
        return self._keys[self._data.currents[key.subject]]

    async def of_subject(self, subject: str) -> DataKey | None:
        """Return the current key of a subject."""
        number = self._data.currents.get(subject)
        return None if number is None else self._keys[number]

    async def replace(self, key: DataKey, was: int) -> bool:
        """Store a key in place of the current one of its subject, if that is ``was``."""
        if self._data.currents.get(key.subject) != was:
            return False
        self._store(key._replace(first=self._keys[was].first or was))
        return True

    async def current(self, older_than_seconds: float, after: int, limit: int) -> Sequence[DataKey]:
        """Return a page of current keys older than this, ascending by number."""
        before = self._engine.now() - timedelta(seconds=older_than_seconds)
        numbers = sorted(one for one in self._data.currents.values() if one > after)
        return [self._keys[one] for one in numbers if self._data.made[one] <= before][:limit]

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
            self._data.currents.pop(self._keys.pop(number).subject, None)
            del self._data.made[number]
        return sorted(gone)

    def _store(self, key: DataKey) -> None:
        self._keys[key.number] = key
        self._data.made[key.number] = self._engine.now()
        self._data.currents[key.subject] = key.number
