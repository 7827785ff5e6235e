"""The engine: connections to one Redis or Valkey, on which commands and scripts run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, Self, TypeVar, cast

import stamina
from redis.asyncio import Redis as RedisClient
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import NoScriptError, ResponseError

from holdfast.engines.redis import scripts
from holdfast.engines.redis.addresses import (
    cluster_client,
    connection_pool,
    is_cluster,
    is_sentinel,
)
from holdfast.engines.redis.capabilities import Capabilities, read_capabilities
from holdfast.engines.redis.cluster import Cluster
from holdfast.engines.redis.connections import (
    BorrowedConnections,
    Command,
    OwnConnections,
    Server,
    SingleServer,
)
from holdfast.engines.redis.errors import (
    DRIVER_ERRORS,
    ClosedError,
    may_retry,
    to_holdfast,
)
from holdfast.engines.redis.keys import DEFAULT_SHARDS, MAX_SHARDS, SHARDS
from holdfast.engines.redis.sentinel import SentinelServer
from holdfast.engines.retry_log import tell_retries
from holdfast.values.backlog import PoolUse
from holdfast.values.errors import ConfigError, UnavailableError

RETRY_SECONDS = 15.0
"""How long an idempotent call is retried: long enough for a restart of the server."""

_LOGGER = "holdfast.redis"
tell_retries()

_FAILURES = (*DRIVER_ERRORS, ClosedError)


class _Singleton(Protocol):
    async def aclose(self) -> None: ...


P = TypeVar("P", bound=_Singleton)


class Redis:
    """One server or one cluster, opened by URL or through a borrowed client.

    It uses only what every Redis since 6.2 and every Valkey has: no modules.

    ::

        engine = await Redis.open("redis://:secret@cache:6379/0")
    """

    name = "redis"

    def __init__(self, server: Server, capabilities: Capabilities, *, shards: int) -> None:
        self._server = server
        self._singletons: dict[Any, _Singleton] = {}
        self.capabilities = capabilities
        self.shards = shards
        self.replaced = scripts.for_replicas() if capabilities.may_fail_over else {}
        """Replacements for parts of the scripts that this server needs, by name."""
        self.scripts = scripts.load(**self.replaced)
        self._failed_at = -math.inf
        self.pool_use: Callable[[], PoolUse] | None = None
        """Returns the use of the connection pool; ``None`` if the engine has no pool of its own."""

    @property
    def divided(self) -> bool:
        """Whether the shards are on several servers, so that a script can use one shard only."""
        return self._server.mode == "cluster"

    @property
    def broken_at(self) -> float:
        """When a command last failed or a connection was found broken, by the monotonic clock.

        ::

            was_away = time.monotonic() - engine.broken_at < 10
        """
        return max(self._failed_at, self._server.broken_at)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        shards: int = DEFAULT_SHARDS,
        max_connections: int = 50,
        connect_timeout_seconds: float = 10,
        command_timeout_seconds: float = 10,
        allow_unsafe: bool = False,
    ) -> Self:
        """Connect by the URL of a server, of a cluster or of Sentinels, and check.

        ``redis://``, ``rediss://``, ``unix://``, ``redis+cluster://`` or ``redis+sentinel://``.
        ``shards`` is stored at the first open of a server and must not change. ``allow_unsafe``
        accepts a ``maxmemory-policy`` that evicts acknowledged data.

        ::

            engine = await Redis.open("redis+cluster://node1:7000,node2:7000")
        """
        server: Server
        use = None
        if is_cluster(url):
            client = cluster_client(
                url,
                max_connections=max_connections,
                socket_timeout=command_timeout_seconds,
                socket_connect_timeout=connect_timeout_seconds,
            )
            server = Cluster(client, limit=max_connections, owns=True)
        else:
            pool = connection_pool(url, socket_connect_timeout=connect_timeout_seconds)
            lender = OwnConnections(
                pool.make_connection,
                limit=max_connections,
                connect_seconds=connect_timeout_seconds,
                patience_seconds=command_timeout_seconds,
            )
            kind = SentinelServer if is_sentinel(url) else SingleServer
            server = kind(pool, lender, command_timeout_seconds)
            use = lender.use
        try:
            engine = await cls._checked(server, shards=shards, allow_unsafe=allow_unsafe)
        except BaseException:
            await server.aclose()
            raise
        engine.pool_use = use
        return engine

    @classmethod
    async def from_client(
        cls,
        client: RedisClient | RedisCluster,
        *,
        shards: int = DEFAULT_SHARDS,
        command_timeout_seconds: float = 10,
        allow_unsafe: bool = False,
    ) -> Self:
        """Borrow a client of ``redis.asyncio``. The engine never closes it.

        ::

            engine = await Redis.from_client(client)
        """
        server: Server
        if isinstance(client, RedisCluster):
            server = Cluster(client, limit=50, owns=False)
        else:
            pool = client.connection_pool
            server = SingleServer(pool, BorrowedConnections(pool), command_timeout_seconds)
        return await cls._checked(server, shards=shards, allow_unsafe=allow_unsafe)

    @classmethod
    async def _checked(cls, server: Server, *, shards: int, allow_unsafe: bool) -> Self:
        if not 1 <= shards <= MAX_SHARDS:
            raise ConfigError(f"redis: shards must be 1 to {MAX_SHARDS}, not {shards}")
        with _mapped(wrote=False):
            capabilities = await read_capabilities(server)
        if capabilities.unsafe and not allow_unsafe:
            raise ConfigError(
                f"redis: {capabilities.unsafe}: an acknowledged write could be evicted; "
                "set `maxmemory-policy noeviction`, or open with allow_unsafe=True"
            )
        engine = cls(server, capabilities, shards=shards)
        there = await engine.run("shards", [SHARDS], [shards], safe=True)
        if int(there) != shards:
            raise ConfigError(
                f"redis: this server is divided into {int(there)} shards, not {shards}: "
                f"open it with shards={int(there)}"
            )
        return engine

    def singleton(self, kind: Callable[[Redis], P]) -> P:
        """Return the one ``kind`` of this engine, created on first use; ``aclose`` closes it."""
        if kind not in self._singletons:
            self._singletons[kind] = kind(self)
        return cast("P", self._singletons[kind])

    def listen(self) -> Any:
        """Return a new connection for pub/sub. The caller closes it."""
        return self._server.listen()

    async def aclose(self) -> None:
        """Close the engine's own connections. A borrowed client stays open."""
        for one in self._singletons.values():
            await one.aclose()
        await self._server.aclose()

    async def ping(self) -> None:
        """Send ``PING`` to every server that holds data, without a retry."""
        with _mapped(wrote=False):
            await self._server.call_each(("ping",))

    async def call_each(self, *command: Any) -> list[Any]:
        """Run a read command on every server that holds data, and return their replies."""
        try:
            return await self._server.call_each(command)
        except _FAILURES as error:
            found: list[Any] = await self._again(
                error, lambda: self._server.call_each(command), safe=True
            )
            return found

    async def command(self, key: str, *command: Any, safe: bool) -> Any:
        """Run one command on one key. In lower case, its reply is not converted by the driver.

        ``safe`` marks it as a read or idempotent: it is retried on failure.
        """
        try:
            return await self._server.call(key, command)
        except _FAILURES as error:
            return await self._again(error, lambda: self._server.call(key, command), safe=safe)

    async def read_many(self, commands: Sequence[tuple[str, Command]]) -> list[Any]:
        """Run one read per key, in one round trip, or one for each server of a cluster."""
        try:
            answers = await self._server.call_many(commands)
        except _FAILURES as error:
            answers = [error] * len(commands)
        return [
            await self._again(answer, partial(self._server.call, *command), safe=True)
            if isinstance(answer, _FAILURES)
            else answer
            for command, answer in zip(commands, answers, strict=True)
        ]

    async def run(
        self, script: str, keys: Sequence[str], args: Sequence[Any], *, safe: bool
    ) -> Any:
        """Run a Lua script on keys of one shard. ``safe`` marks it as idempotent."""
        digest = self.scripts[script].digest
        try:
            return await self._server.call(keys[0], ("evalsha", digest, len(keys), *keys, *args))
        except _FAILURES as error:
            text = self.scripts[script].text
            whole = ("eval", text, len(keys), *keys, *args)
            return await self._again(error, lambda: self._server.call(keys[0], whole), safe=safe)

    async def run_many(
        self, script: str, calls: Sequence[tuple[Sequence[str], Sequence[Any]]], *, safe: bool
    ) -> list[Any]:
        """Run a Lua script on several shards, in one round trip. It is atomic per shard only."""
        digest = self.scripts[script].digest
        if not calls:
            return []
        sent = [(keys[0], ("evalsha", digest, len(keys), *keys, *args)) for keys, args in calls]
        try:
            answers = await self._server.call_many(sent)
        except _FAILURES as error:
            answers = [error] * len(calls)
        return [
            await self._settle(script, call, answer, safe=safe)
            for call, answer in zip(calls, answers, strict=True)
        ]

    async def _settle(
        self,
        script: str,
        call: tuple[Sequence[str], Sequence[Any]],
        answer: Any,
        *,
        safe: bool,
    ) -> Any:
        """Return the reply of a call. If it failed and may be repeated, retry it first."""
        if not isinstance(answer, BaseException):
            return answer
        if not isinstance(answer, _FAILURES):
            raise answer
        keys, args = call
        whole: Command = ("eval", self.scripts[script].text, len(keys), *keys, *args)
        return await self._again(answer, lambda: self._server.call(keys[0], whole), safe=safe)

    async def _again(self, error: BaseException, call: Callable[[], Any], *, safe: bool) -> Any:
        """Retry a failed call for a while if that is safe; else raise Holdfast's error for it."""
        if isinstance(error, NoScriptError):
            # The server does not have the script, or has lost it: this call sends its text.
            try:
                return await call()
            except _FAILURES as failed:
                error = failed
        if not isinstance(error, ResponseError):
            self._failed_at = time.monotonic()
        if not may_retry(error, safe=safe):
            raise to_holdfast(error, wrote=not safe) from error
        try:
            async for attempt in stamina.retry_context(
                on=lambda failed: may_retry(failed, safe=safe),
                attempts=30,
                timeout=RETRY_SECONDS,
                wait_initial=0.02,
                wait_max=1.0,
            ).with_name(_LOGGER, (), {}):
                with attempt:
                    return await call()
        except _FAILURES as failed:
            raise to_holdfast(failed, wrote=not safe) from failed
        raise UnavailableError(self.name, "no answer")


@contextmanager
def _mapped(*, wrote: bool) -> Iterator[None]:
    """Convert the driver's errors to Holdfast's."""
    try:
        yield
    except _FAILURES as error:
        raise to_holdfast(error, wrote=wrote) from error
