"""The stores of one owner under the whole suite: a view on the in-memory engine."""

from __future__ import annotations

from typing import Any, ClassVar

from holdfast.testing.harness import Harness
from holdfast.testing.inmemory import InMemoryHarness
from holdfast.wiring.owned_stores import (
    OwnedEpisodes,
    OwnedHistory,
    OwnedLongTerm,
    OwnedShortTerm,
    OwnedWake,
)
from holdfast.wiring.owner_scope import OwnerScope

SCOPE = OwnerScope("ana/" + "x" * 508)
"""An owner with the longest name there is: no id of the suite may become too long by it."""


class OwnedHarness(InMemoryHarness):
    """What ``state.for_owner()`` gives; it differs from the engine below in names alone."""

    name = "owned"
    views: ClassVar[dict[str, type[Any]]] = {
        "episodes": OwnedEpisodes,
        "history": OwnedHistory,
        "long_term": OwnedLongTerm,
        "short_term": OwnedShortTerm,
    }
    contracts = frozenset({*views, "memory"})
    machine_thrift = 5

    @classmethod
    def reference(cls) -> type[Harness]:
        """The engine below."""
        return InMemoryHarness

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A view on the engine's store."""
        inner = super().store(contract, tenant=tenant, **options)
        return self.views[contract](inner, SCOPE) if contract in self.views else inner

    def wakes(self, *, tenant: str = "default") -> Any:
        """How the owner's sessions are found."""
        return OwnedWake(super().wakes(tenant=tenant), SCOPE)
