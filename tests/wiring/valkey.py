"""A Valkey for tests of wirings: the suite's own is divided into shards in a way of its own."""

from __future__ import annotations

from functools import cache

from tests.engines.server_folder import server_folder
from tests.engines.valkey_server import ValkeyServer


@cache
def valkey() -> ValkeyServer:
    """One server for all tests of a process, started when it is first needed."""
    found = ValkeyServer(fsync="no", folder=server_folder("hf-valkey-"))
    found.start()
    return found
