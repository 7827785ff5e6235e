"""A Redis Cluster: the driver knows which node has a key, and follows it when it moves."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any

from redis.asyncio.cluster import RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import ResponseError

from holdfast.engines.redis.connections import Command
from holdfast.engines.redis.errors import DRIVER_ERRORS, ClosedError, NotSentError


class Cluster:
    """The nodes of a cluster.

    ::

        server = Cluster(client, limit=50, owns=True)
    """

    mode = "cluster"

    def __init__(self, client: RedisCluster, *, limit: int, owns: bool) -> None:
        self._client = client
        self._owns = owns
        self._turns = asyncio.Semaphore(limit)
        self._closed = False
        self.broken_at = -math.inf
        """When a command last got no reply, by the monotonic clock."""

    async def call(self, key: str, command: Command) -> Any:
        """Send one command to the node that has the key, and return its reply."""
        async with self._turns:
            if self._closed:
                raise ClosedError
            try:
                # Discovers the nodes again after one was lost; otherwise it does nothing.
                await self._client.initialize()
                node = self._client.get_node_from_key(key)
            except DRIVER_ERRORS as error:
                raise NotSentError(error) from error
            # With an explicit target node the driver follows a moved key, but does not retry.
            options = {"target_nodes": node, NEVER_DECODE: True}
            try:
                return await self._client.execute_command(*command, **options)
            except DRIVER_ERRORS as error:
                if not isinstance(error, ResponseError):
                    self.broken_at = time.monotonic()
                raise

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Any]:
        """Send commands at once and return their replies; a failed command's is its error."""
        return await asyncio.gather(
            *(self.call(key, command) for key, command in calls), return_exceptions=True
        )

    async def call_each(self, command: Command) -> list[Any]:
        """Send one command to every primary, and return their replies."""
        await self._client.initialize()
        return [
            await node.execute_command(*command, **{NEVER_DECODE: True})
            for node in self._client.get_primaries()
        ]

    def listen(self) -> Any:
        """Return a new connection to any primary: a published message reaches all nodes."""
        node = self._client.get_random_primary_node()
        return node.connection_class(**node.connection_kwargs)

    async def aclose(self) -> None:
        """Close the client, unless it is borrowed."""
        self._closed = True
        if self._owns:
            await self._client.aclose()
