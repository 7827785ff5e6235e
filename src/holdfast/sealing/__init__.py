"""Sealed mode: content is encrypted between the contracts and the engines."""
