"""A Valkey cluster from the wheel, with a replica of each primary if asked for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from holdfast.testing.postgres_server import free_port
from holdfast.testing.valkey_server import ValkeyServer

PRIMARIES = 3
NODE_TIMEOUT_MS = 2000
"""After this long without an answer a node counts as lost, and its replica is promoted."""

_LIMIT_SECONDS = 120.0


class ValkeyCluster:
    """Three primaries that share the slots, and ``replicas`` of each.

    ::

        cluster = ValkeyCluster(replicas=1)
        cluster.start()
        cluster.fail_over()
        cluster.repair()
    """

    def __init__(self, *, replicas: int = 0) -> None:
        self._replicas = replicas
        # Its own choice, the port + 10,000, may be taken or beyond the last one.
        self._buses = [free_port() for _ in range(PRIMARIES * (1 + replicas))]
        timeout = ("--cluster-node-timeout", str(NODE_TIMEOUT_MS)) if replicas else ()
        self.servers = [
            ValkeyServer(
                "--cluster-enabled", "yes", "--cluster-port", str(bus), *timeout, fsync="no"
            )
            for bus in self._buses
        ]
        self._lost: ValkeyServer | None = None

    @property
    def url(self) -> str:
        """How to connect: any node will do."""
        nodes = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://{nodes}"

    def start(self) -> None:
        """Start all, give each primary a third of the slots, and wait until they agree."""
        share = 16_384 // PRIMARIES
        for server in self.servers:
            server.start()
        for at, server in enumerate(self.servers[:PRIMARIES]):
            last = 16_383 if at == PRIMARIES - 1 else (at + 1) * share - 1
            assert server.ask(f"CLUSTER ADDSLOTSRANGE {at * share} {last}") == "+OK"
        first = self.servers[0]
        for server, bus in zip(self.servers, self._buses, strict=True):
            assert first.ask(f"CLUSTER MEET 127.0.0.1 {server.port} {bus}") == "+OK"
        self._until(lambda: all(map(self._agrees, self.servers)), "come together")
        for at, server in enumerate(self.servers[PRIMARIES:]):
            primary = self.servers[at % PRIMARIES].read("CLUSTER MYID")
            assert server.ask(f"CLUSTER REPLICATE {primary}") == "+OK"
        self._until(self._in_sync, "get its replicas")

    def primaries(self) -> list[ValkeyServer]:
        """Those that have slots now."""
        return [
            server
            for server in self.servers
            if server.process is not None and "role:master" in server.read("INFO replication")
        ]

    def fail_over(self) -> None:
        """Kill a primary, and wait until its replica has taken over."""
        lost = random.SystemRandom().choice(self.primaries())
        lost.kill()
        self._lost = lost
        self._until(
            lambda: (
                len(self.primaries()) == PRIMARIES and all(map(self._is_complete, self._live()))
            ),
            "promote a replica",
        )

    def repair(self) -> None:
        """Start the lost node again: it becomes a replica."""
        assert self._lost is not None, "no node was lost"
        self._lost.start()
        self._lost = None
        self._until(self._in_sync, "take the lost node back")

    def remove(self) -> None:
        """Stop all, and leave nothing behind."""
        for server in self.servers:
            server.remove()

    def _live(self) -> list[ValkeyServer]:
        return [server for server in self.servers if server is not self._lost]

    def _in_sync(self) -> bool:
        replicas = [
            "master_link_status:up" in server.read("INFO replication")
            for server in self.servers
            if server not in self.primaries()
        ]
        return len(replicas) == PRIMARIES * self._replicas and all(replicas)

    def _agrees(self, server: ValkeyServer) -> bool:
        # A node without a link gets no published message, and nobody is told.
        nodes = server.read("CLUSTER NODES")
        up = [line for line in nodes.splitlines() if "connected" in line.split(" ")]
        linked = len(up) == len(self.servers) and "handshake" not in nodes
        known = f"cluster_known_nodes:{len(self.servers)}" in server.read("CLUSTER INFO")
        return known and linked and self._is_complete(server)

    def _is_complete(self, server: ValkeyServer) -> bool:
        return "cluster_state:ok" in server.read("CLUSTER INFO")

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + _LIMIT_SECONDS
        while not reached():
            assert time.monotonic() < limit, f"the cluster does not {what}"
            time.sleep(0.05)
