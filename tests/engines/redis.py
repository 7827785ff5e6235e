"""Harnesses of the Redis engine: Valkey standalone, a cluster of three, and borrowed clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import redis.asyncio
from redis.asyncio.cluster import RedisCluster

from holdfast.contracts.channel import Channel
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.engines.redis import scripts
from holdfast.engines.redis.channel import RedisChannels
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.short_term import RedisStates
from holdfast.engines.redis.transcripts import RedisTranscripts
from holdfast.testing.harness import Harness, front
from tests.engines.server_folder import server_folder
from tests.engines.valkey_server import ValkeyCluster, ValkeyServer

MOVED_CLOCK = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] + {shift}
end
local function expire_at(key, at)
  redis.call('PEXPIREAT', key, math.ceil((at - {shift}) / 1000))
end
"""
"""What the scripts ask for the time, in the place of ``clock.lua``: in tests it can be moved."""

AGE = """
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= ARGV[1] + 0 then
    redis.call('DEL', key)
  else
    if left >= 0 then
      redis.call('PEXPIRE', key, left - ARGV[1])
    end
    if redis.call('TYPE', key).ok == 'stream' then
      for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
        for _, one in ipairs(redis.call('XPENDING', key, group[2], '-', '+', 10000)) do
          redis.call('XCLAIM', key, group[2], one[2], 0, one[1],
            'IDLE', one[3] + ARGV[1], 'RETRYCOUNT', one[4], 'JUSTID')
        end
      end
    end
  end
end
"""
"""Ages what the server itself keeps the time of: keys that expire, and claims."""

DUMP = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  found[#found + 1] = key
  found[#found + 1] = redis.call('DUMP', key)
end
return found
"""


@cache
def server() -> ValkeyServer:
    """One server for all tests of a run, started when it is first needed."""
    found = ValkeyServer(fsync="no", folder=server_folder("hf-valkey-"))
    found.start()
    return found


@cache
def cluster() -> ValkeyCluster:
    """One cluster for all tests of a run."""
    found = ValkeyCluster()
    found.start()
    return found


class RedisHarness(Harness):
    """A standalone Valkey over TCP."""

    name = "redis"
    stores: ClassVar[dict[str, Callable[..., Any]]] = {
        "short_term": front(States, RedisStates, "ttl_seconds", "kept_versions"),
        "history": front(History, RedisTranscripts),
        "channels": front(Channel, RedisChannels, "name", "retention_seconds"),
    }
    contracts = frozenset(stores)

    @classmethod
    def url(cls) -> str:
        """How the engine connects."""
        return server().url

    @classmethod
    def servers(cls) -> list[ValkeyServer]:
        """All that hold data."""
        return [server()]

    async def open(self) -> None:
        """An empty server, at the real time."""
        self._shift = 0
        for one in self.servers():
            assert one.ask("FLUSHALL") == "+OK"
        self.engine = await self._connect()

    async def _connect(self) -> Redis:
        return await Redis.open(self.url())

    async def close(self) -> None:
        """Close the connections."""
        await self.engine.aclose()

    async def reopen(self) -> None:
        """New connections to the same server."""
        await self.close()
        self.engine = await self._connect()
        self._move_clock()

    async def elapse(self, seconds: float) -> None:
        """Move the clock of the scripts, and age what the server keeps the time of."""
        self._shift += round(seconds * 1_000_000)
        self._move_clock()
        await self._each(AGE, round(seconds * 1000))

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store on the engine's connections; it stays one when the engine is opened again."""
        return self.stores[contract](self.engine, tenant=tenant, **options)

    async def raw(self, contract: str) -> list[str | bytes]:  # noqa: ARG002 - one dump serves all
        """Every key and what it holds, read around the stores."""
        answers = await self._each(DUMP)
        pairs = [pair for flat in answers for pair in zip(flat[::2], flat[1::2], strict=True)]
        return [part for pair in sorted(pairs) for part in pair]

    def _move_clock(self) -> None:
        self.engine.scripts = scripts.load(clock=MOVED_CLOCK.format(shift=self._shift))

    async def _each(self, script: str, *args: Any) -> list[Any]:
        answers = []
        for one in self.servers():
            async with redis.asyncio.Redis(port=one.port) as client:
                answers.append(await client.eval(script, 0, *args))
        return answers


class BorrowedClientHarness(RedisHarness):
    """A client that somebody else made, with the driver's defaults, over a unix socket."""

    name = "redis-borrowed"

    async def _connect(self) -> Redis:
        path = str(server().socket)
        self._client = redis.asyncio.Redis(unix_socket_path=path, decode_responses=True)
        return await Redis.from_client(self._client)

    async def close(self) -> None:
        """The engine leaves the client open; whoever made it closes it."""
        await self.engine.aclose()
        assert await self._client.ping()
        await self._client.aclose()


class RedisClusterHarness(RedisHarness):
    """Three Valkeys that share the slots."""

    name = "redis-cluster"

    @classmethod
    def url(cls) -> str:
        """Any node."""
        return cluster().url

    @classmethod
    def servers(cls) -> list[ValkeyServer]:
        """All nodes."""
        return cluster().servers


class BorrowedClusterHarness(RedisClusterHarness):
    """A cluster client that somebody else made."""

    name = "redis-cluster-borrowed"

    async def _connect(self) -> Redis:
        self._client = RedisCluster(port=cluster().servers[0].port, host="127.0.0.1")
        return await Redis.from_client(self._client)

    async def close(self) -> None:
        """The engine leaves the client open."""
        await self.engine.aclose()
        await self._client.aclose()
