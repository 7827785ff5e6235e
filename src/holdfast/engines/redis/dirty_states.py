"""The states of all tenants in Redis that changed since they were last saved in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.engines.redis.connections import pairs_of
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import ShardKeys, encode
from holdfast.engines.redis.quarantine import Quarantine
from holdfast.engines.redis.timestamps import timestamp
from holdfast.spi.hybrid.state_snapshots import DirtyStates, SavedState
from holdfast.values.codec import decode_json
from holdfast.values.errors import CodecError


class RedisDirtyStates(DirtyStates):
    """The states in Redis that are not saved in Postgres yet.

    With ``evictable``, saved states may be evicted later, once they are unused. ::

        dirty = RedisDirtyStates(engine)
    """

    def __init__(self, engine: Redis, *, evictable: bool = False) -> None:
        self._engine = engine
        self._evictable = evictable
        self._quarantine = engine.singleton(Quarantine)

    async def changed(self, tenant: str, shard: int, *, limit: int) -> list[SavedState]:
        """Return up to ``limit`` states that changed since they were saved."""
        keys = ShardKeys.of(tenant, shard)
        found = await self._quarantine.guard(
            lambda: self._engine.run(
                "state_changed", (keys.dirty,), (f"{keys.prefix}st:", limit), safe=True
            ),
            (keys.dirty,),
        )
        return await self._readable(keys, found)

    async def read(self, tenant: str, shard: int, sessions: Sequence[str]) -> list[SavedState]:
        """Return the states of these sessions."""
        keys = ShardKeys.of(tenant, shard)
        names = [encode(session) for session in sessions]
        found = await self._quarantine.guard(
            lambda: self._engine.run(
                "state_read", (keys.dirty,), (f"{keys.prefix}st:", *names), safe=True
            ),
            (keys.dirty, *(f"{keys.prefix}st:{name}" for name in names)),
        )
        return [one for one in await self._readable(keys, found) if one.version]

    async def drop(self, tenant: str, shard: int, states: Sequence[SavedState]) -> None:
        """Delete states that still have the given lineage."""
        keys = ShardKeys.of(tenant, shard)
        given: list[Any] = [keys.prefix]
        for one in states:
            given += (encode(one.session), one.lineage)
        await self._engine.run("state_drop", (keys.dirty,), given, safe=True)

    async def saved(self, tenant: str, shard: int, states: Sequence[SavedState]) -> None:
        """Record that states are saved; a state that changed again meanwhile stays dirty."""
        keys = ShardKeys.of(tenant, shard)
        given: list[Any] = [keys.tenant, f"{keys.prefix}st:"]
        for one in states:
            given += (encode(one.session), one.version)
        where = [keys.dirty, keys.work, f"{keys.prefix}hot"]
        if self._evictable:
            where.append(keys.clean)
        await self._quarantine.guard(
            lambda: self._engine.run("state_saved", where, given, safe=True), where
        )

    async def _readable(self, keys: ShardKeys, found: Sequence[Any]) -> list[SavedState]:
        """Decode the states that a script returned. Damaged ones are quarantined and skipped."""
        states: list[SavedState] = []
        for name, *rest in found:
            try:
                version, fields = rest
                states.append(_saved(unquote(name.decode()), int(version), pairs_of(fields)))
            except (ValueError, CodecError):
                await self._quarantine.check([f"{keys.prefix}st:{name.decode()}"])
        return states


def _saved(session: str, marked: int, fields: dict[bytes, bytes]) -> SavedState:
    version = fields.pop(b"v", None)
    if version is None:
        return SavedState(session, marked, {}, gone=True)
    window, expires = fields.pop(b"w", None), fields.pop(b"x", None)
    lineage = int(fields.pop(b"l", 0))
    base, stamp = int(fields.pop(b"o", 0)), int(fields.pop(b"s", 0))
    for own in (b"b", b"r", b"p", b"i"):
        fields.pop(own, None)
    values = {field[1:].decode(): text.decode() for field, text in fields.items()}
    for text in values.values():
        decode_json(text)  # a damaged value must never replace the saved one
    return SavedState(
        session,
        int(version),
        values,
        None if window is None else int(window) / 1_000_000,
        None if expires is None else timestamp(expires),
        lineage=lineage,
        base=base,
        stamp=stamp,
    )
