"""Valkey servers for tests; the fault runs use them too."""

from holdfast.testing.valkey_server import ValkeyCluster, ValkeyServer

__all__ = ["ValkeyCluster", "ValkeyServer"]
