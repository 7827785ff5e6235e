"""Servers with replicas; a replica is promoted when its primary dies."""

from __future__ import annotations

from typing import Protocol

from holdfast.chaos.plan import Topology
from holdfast.testing.postgres_pair import PostgresPair
from holdfast.testing.valkey_cluster import ValkeyCluster
from holdfast.testing.valkey_sentinel import ValkeySentinel


class ServerGroup(Protocol):
    """A primary with its replicas, or several primaries with theirs."""

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that need a proxy; none if clients find the nodes by themselves."""

    def start(self) -> None:
        """Start all servers, and wait until the replicas follow."""

    def address(self, ports: tuple[int, ...] = ()) -> str:
        """Return the URL of all servers; ``ports`` are those of their proxies."""

    def fail_over(self) -> None:
        """Kill a primary, and wait until a replica was promoted."""

    def repair(self) -> None:
        """Start the killed server again as a replica, and wait until it follows."""

    def remove(self) -> None:
        """Stop all servers, and delete their data."""


class _Pair(PostgresPair):
    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(server.port for server in self.servers)

    def address(self, ports: tuple[int, ...] = ()) -> str:
        return self.url(ports or None)


class _Sentinel(ValkeySentinel):
    ports: tuple[int, ...] = ()

    def address(self, ports: tuple[int, ...] = ()) -> str:  # noqa: ARG002 - there is no proxy
        return self.url


class _Cluster(ValkeyCluster):
    ports: tuple[int, ...] = ()

    def address(self, ports: tuple[int, ...] = ()) -> str:  # noqa: ARG002 - there is no proxy
        return self.url


def group_of(topology: Topology, *options: str) -> ServerGroup:
    """Return a group of servers that is not started yet; ``options`` are settings of Postgres.

    ::

        group = group_of("sentinel")
    """
    match topology:
        case "standby":
            return _Pair(*options)
        case "sentinel":
            return _Sentinel()
        case "cluster":
            return _Cluster(replicas=1)
    raise ValueError(f"a {topology} server has no replicas")
