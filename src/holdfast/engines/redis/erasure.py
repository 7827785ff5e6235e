"""Finds the channels and states that an erasure deletes from Redis, by their key names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from urllib.parse import unquote

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import ShardKeys
from holdfast.spi.erasure import ErasureScope, Key, StoreFinder

_AT_ONCE = 1000


class RedisNames(StoreFinder):
    """Finds the channels (``chan``) or the states (``st``) of a tenant that an erasure deletes.

    It scans all keys of the server, so it is slow, and used for erasures only. ::

        channels = RedisNames(engine, "chan", ErasureScope.has_id, tenant="acme")
    """

    def __init__(
        self,
        engine: Redis,
        kind: str,
        fits: Callable[[ErasureScope, str], bool],
        *,
        tenant: str = "default",
    ) -> None:
        self._engine = engine
        self._kind = kind
        self._fits = fits
        self._tenant = tenant

    async def find(self, scope: ErasureScope, limit: int | None) -> Sequence[Key]:
        """Return the names of the channels or sessions in scope."""
        found: dict[str, None] = {}
        async for name in self._names():
            if self._fits(scope, name):
                found[name] = None
            if len(found) == limit:
                break
        return [(name,) for name in found]

    async def _names(self) -> AsyncIterator[str]:
        # A shard of a cluster is on one node; without a cluster one node has all shards.
        is_cluster = self._engine.capabilities.mode == "cluster"
        for shard in range(self._engine.shards if is_cluster else 1):
            prefix = ShardKeys.of(self._tenant, shard).prefix
            here = f"{prefix}{self._kind}:"
            pattern = here if is_cluster else here.replace("{s00}", "{s*}", 1)
            cursor: bytes | str = "0"
            while True:
                cursor, keys = await self._engine.command(
                    here, "scan", cursor, "match", f"{pattern}*", "count", _AT_ONCE, safe=True
                )
                for key in keys:
                    yield unquote(key.decode().rpartition(":")[2])
                if int(cursor) == 0:
                    break
