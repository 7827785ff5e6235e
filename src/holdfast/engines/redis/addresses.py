"""Creates the driver's clients from URLs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException

from holdfast.engines.redis.fast_connection import use_fast_connections
from holdfast.engines.redis.sentinel import sentinel_pool
from holdfast.values.errors import ConfigError, UnknownSchemeError

CLUSTER = "redis+cluster"
SENTINEL = "redis+sentinel"
SCHEMES = ("redis", "rediss", "unix", CLUSTER, SENTINEL)
DEFAULT_PORT = 6379
_OURS: dict[str, Any] = {"protocol": 2, "decode_responses": False}
"""Options of all connections. RESP 2: the replies are the same, and RESP 3 is a tenth slower."""


def is_cluster(url: str) -> bool:
    """Return whether a URL names a cluster. Raises ``ConfigError`` for an unknown scheme.

    >>> is_cluster("redis+cluster://node1:7000")
    True
    """
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise UnknownSchemeError(scheme, known=[f"{name}://" for name in SCHEMES])
    return scheme == CLUSTER


def is_sentinel(url: str) -> bool:
    """Return whether a URL names Sentinels.

    >>> is_sentinel("redis+sentinel://s1:26379,s2:26379/cache")
    True
    """
    return url.partition("://")[0] == SENTINEL


def connection_pool(url: str, **options: Any) -> ConnectionPool:
    """Return a connection pool for the server of a URL. It does not connect yet.

    >>> connection_pool("redis://localhost:6380/1").connection_kwargs["port"]
    6380
    """
    options |= {**_OURS, "socket_timeout": None, "retry": Retry(NoBackoff(), 0)}
    try:
        if is_sentinel(url):
            return sentinel_pool(url, **options)
        return use_fast_connections(ConnectionPool.from_url(url, **options))
    except ValueError:
        raise _unreadable() from None


def cluster_client(url: str, **options: Any) -> RedisCluster:
    """Return a client for the cluster of a URL, which may name several nodes. It does not connect.

    >>> len(cluster_client("redis+cluster://a:1,b:2").nodes_manager.startup_nodes)
    2
    """
    try:
        parts = urlsplit(url)
        credentials, at, hosts = parts.netloc.rpartition("@")
        first, *others = [urlsplit(f"//{host}") for host in hosts.split(",")]
        plain = urlunsplit(("redis", f"{credentials}{at}{first.netloc}", *parts[2:]))
        nodes = [
            ClusterNode(node.hostname or "", node.port or DEFAULT_PORT) for node in (first, *others)
        ]
        return RedisCluster.from_url(
            plain, startup_nodes=nodes, **_OURS, retry=Retry(NoBackoff(), 0), **options
        )
    except (ValueError, RedisClusterException):
        raise _unreadable() from None


def _unreadable() -> ConfigError:
    # Without the driver's message, which may contain a part of the password.
    return ConfigError(
        "redis: the URL cannot be read: write redis://user:password@host:port/db, "
        "unix:///path?db=0, redis+cluster://host:port,host:port or "
        "redis+sentinel://host:port,host:port/service, "
        "with special characters of the password percent-encoded"
    )
