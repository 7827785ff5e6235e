"""Naive models of the contracts."""
