"""Raises if LangChain is not installed; imported before all modules that need it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.values.errors import MissingExtraError

EXTRA = "langchain"
"""The extra to install: ``holdfast[langchain]``."""

if find_spec("langchain_core") is None:
    raise MissingExtraError("HoldfastVectorStore", EXTRA)
