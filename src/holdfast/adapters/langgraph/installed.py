"""Refuses to go on where LangGraph is not installed; imported before all that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "langgraph"
"""What to install: ``holdfast[langgraph]``."""

if find_spec("langgraph") is None:
    raise MissingExtraError("HoldfastSaver", EXTRA)
