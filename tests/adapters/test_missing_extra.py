"""An adapter whose framework is not installed names the extra that brings it."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from holdfast.errors import MissingExtraError


@pytest.mark.parametrize("framework", ["agent_framework", "langgraph", "mcp", "pydantic_ai"])
def test_a_missing_framework_is_an_error_that_names_its_extra(
    framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"holdfast.adapters.{framework}"
    for loaded in [one for one in sys.modules if one.startswith(name)]:
        monkeypatch.delitem(sys.modules, loaded)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda one: None if one == framework else find(one)
    )
    extra = framework.replace("_", "-")
    with pytest.raises(MissingExtraError, match=rf"pip install 'holdfast\[{extra}\]'"):
        importlib.import_module(name)
