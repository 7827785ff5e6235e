"""The examples in docstrings run, also those of functions that are not public."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.architecture.source import PACKAGE

FOLDERS = sorted(
    one.parent.name for one in PACKAGE.glob("*/__init__.py") if one.parent.name != "adapters"
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_examples_of_a_package_run(folder: str) -> None:
    failed, tried = [], 0
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        if path.name.startswith("__"):
            continue
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        result = doctest.testmod(importlib.import_module(name))
        tried += result.attempted
        failed += [name] * bool(result.failed)
    assert failed == []
    assert tried or folder in {"testing", "chaos", "bench"}
