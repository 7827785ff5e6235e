"""Raises if the OpenAI Agents SDK is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "openai"
"""The extra to install: ``holdfast[openai]``."""

if find_spec("agents") is None:
    raise MissingExtraError("HoldfastSession", EXTRA)
