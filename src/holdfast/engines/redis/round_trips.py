"""Calls a function for each command that an engine sends, if one is registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.engines.redis.connections import Command
from holdfast.engines.redis.engine import Redis


def watch_round_trips(engine: Redis, call: Callable[[], None]) -> None:
    """Call ``call`` for each command, script or pipeline that is sent: each is one round trip.

    A pipeline to several servers of a cluster counts once. An engine without such a function has
    no overhead. ::

        watch_round_trips(engine, count)
    """
    server = engine._server  # noqa: SLF001 - what every command goes through
    one, many = server.call, server.call_many

    def counted(key: str, command: Command) -> Awaitable[Any]:
        call()
        return one(key, command)

    async def counted_many(calls: Sequence[tuple[str, Command]]) -> list[Any]:
        call()
        return await many(calls)

    vars(server).update(call=counted, call_many=counted_many)
