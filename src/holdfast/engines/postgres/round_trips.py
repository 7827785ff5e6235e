"""Calls a function for each statement that an engine sends, if one is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.engines.postgres.engine import Postgres


def watch_round_trips(engine: Postgres, call: Callable[[], None]) -> None:
    """Call ``call`` in the context of each statement: one statement is one round trip.

    Statements on a connection that a caller holds, as for large blobs, are not counted one by one.
    An engine without such a function has no overhead. ::

        watch_round_trips(engine, count)
    """
    take = engine._take  # noqa: SLF001 - what every statement begins with

    async def counted() -> Any:
        call()
        return await take()

    vars(engine)["_take"] = counted
