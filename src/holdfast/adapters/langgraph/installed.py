"""Raises if LangGraph is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "langgraph"
"""The extra to install: ``holdfast[langgraph]``."""

if find_spec("langgraph") is None:
    raise MissingExtraError("HoldfastSaver", EXTRA)
