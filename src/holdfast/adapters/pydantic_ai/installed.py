"""Raises if pydantic-ai is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "pydantic-ai"
"""The extra to install: ``holdfast[pydantic-ai]``."""

if find_spec("pydantic_ai") is None:
    raise MissingExtraError("HoldfastConversations", EXTRA)
