"""Adapters for agent frameworks: one folder per framework, each a separate extra."""
