"""Providers of keys that encrypt keys."""
