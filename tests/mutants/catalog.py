"""All mutants by name, as harnesses for ``--engine tests.mutants.catalog:NAME``."""

from __future__ import annotations

import importlib
import pkgutil

from holdfast.testing.inmemory import InMemoryHarness
from tests import mutants
from tests.mutants.registry import MUTANTS

__all__ = ["MUTANTS"]

_OWN = {"registry", "catalog"}
for _module in pkgutil.iter_modules(mutants.__path__):
    if _module.name not in _OWN and not _module.name.startswith("test_"):
        importlib.import_module(f"{mutants.__name__}.{_module.name}")


def __getattr__(name: str) -> type[InMemoryHarness]:
    if name in MUTANTS:
        return MUTANTS[name].harness
    raise AttributeError(f"there is no mutant called {name}")
