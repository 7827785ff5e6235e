"""An adapter whose framework is not installed names the extra that brings it."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from holdfast.errors import MissingExtraError

MODULES = {
    "a2a": "a2a",
    "agent_framework": "agent_framework",
    "google_adk": "google.adk",
    "langchain": "langchain_core",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
}
"""The module of the framework of each adapter."""

EXTRAS = {"a2a": "server", "openai_agents": "openai"}


@pytest.mark.parametrize(("adapter", "module"), MODULES.items())
def test_a_missing_framework_is_an_error_that_names_its_extra(
    adapter: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"holdfast.adapters.{adapter}"
    for loaded in [one for one in sys.modules if one.startswith(name)]:
        monkeypatch.delitem(sys.modules, loaded)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda one: None if one == module else find(one)
    )
    extra = EXTRAS.get(adapter, adapter.replace("_", "-"))
    with pytest.raises(MissingExtraError, match=rf"pip install '\.\[{extra}\]'"):
        importlib.import_module(name)
