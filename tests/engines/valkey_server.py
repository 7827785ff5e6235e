"""Valkey servers for tests; the fault runs use them too."""

from holdfast.testing.valkey_cluster import PRIMARIES, ValkeyCluster
from holdfast.testing.valkey_server import ValkeyServer

__all__ = ["PRIMARIES", "ValkeyCluster", "ValkeyServer"]
