"""The states of all tenants that were written since they were last saved, in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.backends.redis.connections import pairs_of
from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import ShardKeys, encode
from holdfast.backends.redis.moments import moment
from holdfast.kernel.storage.state_snapshots import DirtyStates, SavedState


class RedisDirtyStates(DirtyStates):
    """``DirtyStates`` of the states that ``RedisShortTerm`` writes with ``snapshots``.

    ::

        dirty = RedisDirtyStates(engine)
    """

    def __init__(self, engine: Redis) -> None:
        self._engine = engine

    async def changed(self, tenant: str, shard: int, *, limit: int) -> list[SavedState]:
        """Some of them."""
        keys = ShardKeys.of(tenant, shard)
        found = await self._engine.run(
            "state_changed", (keys.dirty,), (f"{keys.prefix}st:", limit), safe=True
        )
        return [
            _saved(unquote(name.decode()), int(version), pairs_of(fields))
            for name, version, fields in found
        ]

    async def read(self, tenant: str, shard: int, sessions: Sequence[str]) -> list[SavedState]:
        """Those of some sessions."""
        keys = ShardKeys.of(tenant, shard)
        found = await self._engine.run(
            "state_read",
            (keys.dirty,),
            (f"{keys.prefix}st:", *(encode(session) for session in sessions)),
            safe=True,
        )
        states = [
            _saved(unquote(name.decode()), int(version), pairs_of(fields))
            for name, version, fields in found
        ]
        return [one for one in states if one.version]

    async def saved(self, tenant: str, shard: int, states: Sequence[SavedState]) -> None:
        """Take the marks off."""
        keys = ShardKeys.of(tenant, shard)
        given: list[Any] = [keys.tenant]
        for one in states:
            given += (encode(one.session), one.version)
        await self._engine.run(
            "state_saved", (keys.dirty, keys.work, f"{keys.prefix}hot"), given, safe=True
        )


def _saved(session: str, marked: int, fields: dict[bytes, bytes]) -> SavedState:
    version = fields.pop(b"v", None)
    if version is None:
        return SavedState(session, marked, {}, gone=True)
    window, expires = fields.pop(b"w", None), fields.pop(b"x", None)
    lineage = int(fields.pop(b"l", 0))
    return SavedState(
        session,
        int(version),
        {field[1:].decode(): text.decode() for field, text in fields.items()},
        None if window is None else int(window) / 1_000_000,
        None if expires is None else moment(expires),
        lineage=lineage,
    )
