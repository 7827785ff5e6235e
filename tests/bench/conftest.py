"""Leaves out what needs the frameworks of the adapters: `make test-peers` has them installed."""

from __future__ import annotations

from benchmarks.peers.contest import ADAPTERS, present

collect_ignore = ["test_adapter_peers.py"] if present(ADAPTERS)[1] else []
