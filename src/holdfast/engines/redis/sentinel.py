"""The primary that a group of Sentinels names, found again for each new connection."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection
from redis.exceptions import ConnectionError as DriverConnectionError

from holdfast.engines.redis.connections import Lender, SingleServer
from holdfast.engines.redis.fast_connection import FastCommands

DEFAULT_SENTINEL_PORT = 26_379
_MANAGER: Any = Sentinel
_POOL: Any = SentinelConnectionPool
"""Untyped, because the driver has no types for these classes."""

PATIENCE_SECONDS = 2.0
"""How long one Sentinel may take to answer before the next is asked."""


class PrimaryConnection(FastCommands, SentinelManagedConnection):
    """A connection to the current primary of a service."""

    async def connect_to(self, address: tuple[str, int]) -> None:
        """Connect, and check that the server is the primary.

        A Sentinel may not know yet that this server was demoted.
        """
        driver: Any = super()
        try:
            await driver.connect_to(address)
            await self._check_role()
        except BaseException:
            # A connection that is used again must not have an answer on its way.
            await self.disconnect(nowait=True)
            raise

    async def _check_role(self) -> None:
        await self.send_command("ROLE", check_health=False)
        role = await self.read_response(disable_decoding=True)
        if role[0] != b"master":
            raise DriverConnectionError(f"{self.host}:{self.port} is not the primary")


class SentinelServer(SingleServer):
    """The current primary of a service, as the Sentinels name it.

    ::

        server = SentinelServer(pool, lender, 10)
    """

    mode = "sentinel"

    def __init__(self, pool: Any, lender: Lender, limit_seconds: float) -> None:
        super().__init__(pool, lender, limit_seconds)
        self._sentinels = pool.sentinel_manager.sentinels

    async def aclose(self) -> None:
        """Close the connections to the primary and to the Sentinels."""
        await super().aclose()
        await asyncio.gather(*(sentinel.aclose() for sentinel in self._sentinels))


def sentinel_pool(url: str, **options: Any) -> SentinelConnectionPool:
    """Return a connection pool for the service of a URL. It does not connect yet.

    The user and password of the URL are those of the primary; those of the Sentinels are in its
    query. Raises ``ValueError`` for a URL that cannot be read.

    >>> sentinel_pool("redis+sentinel://a:1,b:2/cache").service_name
    'cache'
    """
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    service, _, db = parts.path.strip("/").partition("/")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    nodes = [urlsplit(f"//{host}") for host in hosts.split(",")]
    if not service or not all(node.hostname for node in nodes):
        raise ValueError("no service, or no host")
    manager = _MANAGER(
        [(node.hostname, node.port or DEFAULT_SENTINEL_PORT) for node in nodes],
        sentinel_kwargs={
            "username": query.get("sentinel_username"),
            "password": query.get("sentinel_password"),
            "socket_timeout": PATIENCE_SECONDS,
            "socket_connect_timeout": PATIENCE_SECONDS,
        },
    )
    found: SentinelConnectionPool = _POOL(
        unquote(service),
        manager,
        connection_class=PrimaryConnection,
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(db or 0),
        **options,
    )
    return found
