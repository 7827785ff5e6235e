"""Stores for agent frameworks: each folder has those of one framework, which is an extra."""
