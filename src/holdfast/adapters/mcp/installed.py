"""Raises if the MCP SDK is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "mcp"
"""The extra to install: ``holdfast[mcp]``."""

if find_spec("mcp") is None:
    raise MissingExtraError("the MCP server", EXTRA)
