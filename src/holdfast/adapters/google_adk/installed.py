"""Raises if Google ADK is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "google-adk"
"""The extra to install: ``holdfast[google-adk]``."""

# `google` is a namespace of several distributions; where none is installed, it is not there either.
if find_spec("google") is None or find_spec("google.adk") is None:
    raise MissingExtraError("HoldfastSessionService", EXTRA)
