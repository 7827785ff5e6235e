"""Working states, in Redis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

from holdfast.engines.redis.connections import pairs_of
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import SessionKeys
from holdfast.engines.redis.quarantine import Quarantine, is_damage
from holdfast.engines.redis.timestamps import duration, microseconds, timestamp
from holdfast.spi.hybrid.state_snapshots import (
    AbsentStateError,
    FallbackWrite,
    RemovedStateError,
    SavedState,
    UnregisteredError,
    Written,
)
from holdfast.spi.states import HotStates
from holdfast.values.codec import decode_json
from holdfast.values.errors import CodecError, EngineError, VersionConflictError
from holdfast.values.states import StateSnapshot, StateWrite

T = TypeVar("T")
REMOVED_SECONDS = 600
"""How long the server remembers that a state was evicted or cleared."""

_MARK = "="
"""The prefix of the hash fields that hold the user's keys; other fields are the store's own."""


class RedisStates(HotStates):
    """Stores working states, one HASH per session, each value as JSON text.

    The server expires a state that has a time to live. With ``snapshots`` each write marks its
    state as dirty, so that a consolidator can save it in the durable store; a state that is absent
    here may then exist there. ``evictable``: restored states are evicted again once they are
    unused. ::

        states = RedisStates(engine, tenant="acme")
    """

    def __init__(
        self,
        engine: Redis,
        *,
        tenant: str = "default",
        snapshots: bool = False,
        writer: str = "",
        evictable: bool = False,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._snapshots = snapshots
        self.writer = writer
        self._evictable = evictable
        self._compared = snapshots and engine.capabilities.may_fail_over
        """Whether each read must check if a state is from before a failover."""

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state; with ``keys``, only these keys of it."""
        if keys is None:
            return await self._read(session, (), snapshot_of)
        fields = ("v", "x", "b", *[_MARK + key for key in keys])
        return await self._read(session, fields, lambda found: _some(keys, found))

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of sessions."""
        states = [self._keys(session).state for session in sessions]
        try:
            if self._compared:
                found = await self._engine.run_many(
                    "state_get", [((one,), ()) for one in states], safe=True
                )
            else:
                found = await self._engine.read_many([(one, ("hgetall", one)) for one in states])
        except EngineError as error:
            if not is_damage(error):
                raise
        else:
            with suppress(ValueError, CodecError):
                return [snapshot_of(one) for one in found]
        # One of them is damaged: single reads find out which, and quarantine or report it.
        return [await self.read(session, None) for session in sessions]

    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace or patch a state. Returns its new version."""
        return (await self.put(write, expected_version=expected)).version

    async def clear(self, session: str) -> None:
        """Delete a state."""
        state = self._keys(session).state
        # Not safe to repeat: the repeat could delete another process's write in between.
        await self._engine.command(state, "del", state, safe=False)

    async def restore(
        self,
        state: SavedState,
        *,
        base: int,
        unsaved: bool = False,
        as_of: datetime | None = None,
        eviction: int = 0,
    ) -> bool:
        """Restore a state, unless it was written since. Returns whether Redis has one now."""
        keys = self._keys(state.session)
        common = keys.common
        window, expires = "", ""
        if state.ttl_seconds is not None and state.expires_at is not None:
            window, expires = str(duration(state.ttl_seconds)), str(microseconds(state.expires_at))
        pairs = [part for key, text in state.values.items() for part in (_MARK + key, text)]
        # Safe to repeat: the second call finds the state.
        there = await self._run(
            "state_restore",
            (
                *(keys.state, common.versions, common.dirty, common.work),
                *(common.removed, common.clean),
            ),
            (
                *(keys.name, state.version, window, expires),
                common.tenant if unsaved else "",
                "" if as_of is None else microseconds(as_of),
                *(base, state.stamp, eviction),
                f"{common.tenant}:{keys.name}" if self._evictable else "",
                *pairs,
            ),
            safe=True,
        )
        if isinstance(there, bytes):
            raise RemovedStateError(state.session, eviction=int(there.split()[1]))
        return bool(there)

    async def forget(self, session: str, *, version: int) -> bool:
        """Delete a state if it has this version; 0 is no state. Returns whether it had it."""
        keys = self._keys(session)
        gone = await self._run(
            "state_forget",
            (keys.state, keys.common.removed),
            (version, keys.name, duration(REMOVED_SECONDS)),
            safe=False,
        )
        return bool(gone)

    async def merge(self, fallback: FallbackWrite, *, base: int | None = None) -> Written:
        """Apply fallback writes that were not applied before. Returns the state's new version."""
        write = fallback.write
        keys = self._keys(write.session)
        pairs = [part for key, text in write.values.items() for part in (_MARK + key, text)]
        answer = await self._run(
            "state_merge",
            (
                keys.state,
                keys.common.versions,
                keys.common.dirty,
                keys.common.work,
                keys.last_fallback,
            ),
            (
                *(fallback.stamp, int(write.fresh), int(fallback.cleared), int(write.gone)),
                "" if write.ttl_seconds is None else duration(write.ttl_seconds),
                *(keys.name, keys.common.tenant, len(write.values)),
                *("" if base is None else base, *pairs),
                *(_MARK + key for key in write.dropped),
            ),
            safe=True,
        )
        if answer == b"absent":
            raise AbsentStateError(write.session)
        return Written(int(answer[0]), int(answer[1]))

    def shard_of(self, session: str) -> int:
        """Return the shard of a session."""
        return self._keys(session).common.shard

    async def put(
        self,
        write: StateWrite,
        *,
        expected_version: int | None = None,
        base: int | None = None,
        registered: int | None = None,
    ) -> Written:
        """Write to a state. Returns its new version."""
        keys = self._keys(write.session)
        expected = "" if expected_version is None else expected_version
        window = "" if write.ttl_seconds is None else duration(write.ttl_seconds)
        mode = "set" if write.fresh else "patch"
        args: list[Any] = [mode, expected, window, len(write.values)]
        for key, text in write.values.items():
            args += (_MARK + key, text)
        args += [_MARK + key for key in write.dropped]
        where: tuple[str, ...] = (keys.state, keys.common.versions)
        if self._snapshots:
            where += (keys.common.dirty, keys.common.work, keys.common.removed)
            args += ("" if base is None else base, self.writer)
            args.append("" if registered is None else registered)
            args += (keys.name, keys.common.tenant)
        # Not safe to repeat: the repeat could undo another process's write in between.
        answer = await self._run("state_write", where, args, safe=False)
        if isinstance(answer, list):
            return Written(int(answer[0]), int(answer[1]))
        if answer == b"absent":
            raise AbsentStateError(write.session)
        if answer.startswith(b"unregistered "):
            raise UnregisteredError(write.session, eviction=int(answer.split()[1]))
        raise VersionConflictError(
            "state", write.session, expected=expected_version or 0, actual=int(answer)
        )

    async def _run(
        self, script: str, keys: Sequence[str], args: Sequence[Any], *, safe: bool
    ) -> Any:
        """Run a script. If Postgres also has the states, quarantine damaged values."""
        try:
            return await self._engine.run(script, keys, args, safe=safe)
        except EngineError as error:
            # A script that failed on a damaged value may have written before it failed.
            if not self._snapshots or not is_damage(error) or not await self._moved(keys):
                raise
        return await self._engine.run(script, keys, args, safe=safe)

    async def _ask(self, state: str, fields: Sequence[str]) -> Any:
        """Return some fields of a state's HASH, or all."""
        if self._compared:
            return await self._engine.run("state_get", (state,), fields, safe=True)
        ask = ("hmget", state, *fields) if fields else ("hgetall", state)
        return await self._engine.command(state, *ask, safe=True)

    async def _read(self, session: str, fields: Sequence[str], made: Callable[[Any], T]) -> T:
        """Read a state. If it is unreadable, quarantine it and return an absent state."""
        state = self._keys(session).state
        try:
            return made(await self._ask(state, fields))
        except EngineError as error:
            if not self._snapshots or not is_damage(error) or not await self._moved([state]):
                raise
        except (ValueError, CodecError) as error:
            if not self._snapshots or not await self._moved([state]):
                raise CodecError(f"state {session!r} in Redis is damaged: {error}") from error
        return made(await self._ask(state, fields))

    async def _moved(self, keys: Sequence[str]) -> int:
        return await self._engine.singleton(Quarantine).check(keys)

    def _keys(self, session: str) -> SessionKeys:
        return SessionKeys.of(self._tenant, session, self._engine.shards)


def snapshot_of(answer: Any) -> StateSnapshot:
    """Return a whole state from all fields of its HASH.

    >>> snapshot_of([b"v", b"7", b"=step", b"2"])
    StateSnapshot(state={'step': 2}, version=7, expires_at=None, degraded='', as_of=None)
    """
    fields = pairs_of(answer)
    version, expires = fields.pop(b"v", None), fields.pop(b"x", None)
    as_of = fields.pop(b"b", None)
    for own in (b"w", b"l", b"r", b"o", b"s", b"p", b"i"):
        fields.pop(own, None)
    found = {field[1:].decode(): decode_json(text) for field, text in fields.items()}
    return _snapshot(found, version, expires, as_of)


def _snapshot(state: dict[str, Any], version: Any, expires: Any, as_of: Any) -> StateSnapshot:
    return StateSnapshot(
        state,
        int(version or 0),
        None if expires is None else timestamp(expires),
        as_of=None if as_of is None else timestamp(as_of),
    )


def _some(keys: Collection[str], found: list[Any]) -> StateSnapshot:
    texts = zip(keys, found[3:], strict=True)
    state = {key: decode_json(text) for key, text in texts if text is not None}
    return _snapshot(state, *found[:3])
