"""Benchmarks for a checkout of the project: they are not part of the wheel."""
