"""The same work by bare redis-py: the floors, by which the Redis engine's times are divided.

It uses one open connection, parameters that are already encoded, and keys with only the data that
the work needs. Replies are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis

ADD = "return redis.call('XADD', KEYS[1], '*', 'b', ARGV[1])"
"""A Lua script that only appends to a stream."""

STATE, LOG = "floor:state", "floor:log"


async def connect(path: str) -> Any:
    """Return a client that holds one connection to a unix socket.

    ::

        held = await connect("/run/valkey.sock")
    """
    client = Redis(unix_socket_path=path, single_connection_client=True, protocol=2)
    await client.initialize()
    return client


async def floor(held: Any, body: str) -> dict[str, Callable[[int], Any]]:
    """Return the operations by name, after their data is stored.

    ::

        bare = await floor(held, "x" * 1800)
    """
    await held.hset(STATE, mapping={"current_task": '"x"', "other": '"y"'})
    digest = await held.script_load(ADD)
    text = body.encode()

    def add(_number: int) -> Any:
        return held.evalsha(digest, 1, LOG, text)

    return {
        "redis state get": lambda _n: held.hmget(STATE, ["current_task"]),
        "redis state patch": lambda n: held.hset(STATE, "current_task", n),
        "redis history append": add,
        "memory record at hot": add,
        "memory state get": lambda _n: held.hmget(STATE, ["current_task"]),
    }
