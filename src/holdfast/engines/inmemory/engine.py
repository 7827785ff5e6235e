"""The in-memory engine: it implements every contract, and its data ends with the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, TypeVar, cast

from holdfast.values.clock import Clock, SystemClock

T = TypeVar("T")


class InMemory:
    """The data of all tenants, and the clock that determines expiry.

    Stores are thin views on this data: two stores of one tenant see the same. No change contains an
    await, so that concurrent tasks of one event loop never see half of it.

    >>> engine = InMemory()
    >>> engine.table("acme", dict) is engine.table("acme", dict)
    True
    """

    name = "inmemory"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._tables: dict[tuple[str, Callable[[], Any]], Any] = {}

    def now(self) -> datetime:
        """Return the engine's current time."""
        return self._clock.now()

    def table(self, tenant: str, kind: Callable[[], T]) -> T:
        """Return the data of one kind for one tenant, created on first use."""
        key = (tenant, kind)
        if key not in self._tables:
            self._tables[key] = kind()
        return cast("T", self._tables[key])

    def tables(self) -> list[Any]:
        """Return the data of all tenants, for tests that bypass the stores."""
        return list(self._tables.values())

    def tenants(self) -> set[str]:
        """Return the tenants that have data; empty tables do not count."""
        return {tenant for (tenant, _), data in self._tables.items() if _has_rows(data)}

    def by_tenant(self, kind: Callable[[], T]) -> dict[str, T]:
        """Return the data of one kind by tenant, without the tenants that have none."""
        return {tenant: data for (tenant, made), data in self._tables.items() if made is kind}


def _has_rows(data: object) -> bool:
    names = getattr(type(data), "__slots__", None) or vars(data)
    values = [getattr(data, name) for name in names]
    return any(isinstance(one, Mapping | MutableSequence | AbstractSet) and one for one in values)
