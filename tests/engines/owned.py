"""The stores of one owner under the whole suite: a view on the in-memory engine."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.contracts.wakes import Wakes
from holdfast.testing.harness import Harness
from holdfast.testing.inmemory import InMemoryHarness

SCOPE = OwnerScope("ana/" + "x" * 508)
"""An owner with the longest name there is: no id of the suite may become too long by it."""


class OwnedHarness(InMemoryHarness):
    """What ``state.for_owner()`` gives; it differs from the engine below in names alone."""

    name = "owned"
    views = frozenset(
        {
            *("boards", "channels", "checkpoints", "episodes", "graph", "history", "items"),
            *("long_term", "short_term", "vectors"),
        }
    )
    contracts = frozenset({*views, "memory"})
    without = frozenset(
        # It compares owners with the store of nobody, which no view of an owner is.
        {"test_entities_are_those_of_the_owner_who_asks_or_those_that_nobody_owns"}
    )
    machine_thrift = 5

    @classmethod
    def reference(cls) -> type[Harness]:
        """The engine below."""
        return InMemoryHarness

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A view on the engine's store."""
        if contract == "channels" and "name" in options:
            options["name"] = SCOPE.id("name", options["name"])
        inner = super().store(contract, tenant=tenant, **options)
        return inner.for_owner(SCOPE) if contract in self.views - {"channels"} else inner

    def wakes(self, *, tenant: str = "default") -> Wakes:
        """How the owner's sessions are found."""
        return super().wakes(tenant=tenant).for_owner(SCOPE)
