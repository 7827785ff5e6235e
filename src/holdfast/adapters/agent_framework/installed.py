"""Raises if Agent Framework is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "agent-framework"
"""The extra to install: ``holdfast[agent-framework]``."""

if find_spec("agent_framework") is None:
    raise MissingExtraError("HoldfastHistory", EXTRA)
