"""Raises if the A2A SDK is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "server"
"""The extra to install: ``holdfast[server]``."""

if find_spec("a2a") is None:
    raise MissingExtraError("HoldfastTaskStore", EXTRA)
