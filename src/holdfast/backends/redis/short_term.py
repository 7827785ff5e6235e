"""The state of sessions, in Redis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from holdfast.backends.redis.connections import pairs_of
from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import SessionKeys
from holdfast.backends.redis.moments import microseconds, moment, span
from holdfast.backends.redis.quarantine import Quarantine, is_damage
from holdfast.kernel.core.checks import check_id, check_optional_count, check_seconds
from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.core.errors import CodecError, EngineError, VersionConflictError
from holdfast.kernel.storage.short_term import StateSnapshot, check_keys
from holdfast.kernel.storage.state_snapshots import (
    AbsentStateError,
    AsideState,
    HotStates,
    RemovedStateError,
    SavedState,
    StateWrite,
    UnregisteredError,
    Written,
    patching,
    replacing,
)

T = TypeVar("T")
REMOVED_SECONDS = 600
"""For how long it is known that a state was evicted or cleared."""

_MARK = "="
"""What the fields of the user begin with; those of the store do not."""


class RedisShortTerm(HotStates):
    """``ShortTerm`` in one HASH per session, each value as the codec's JSON text.

    A state with a window is dropped by the server itself when that has passed. With ``snapshots``
    each write marks its session, so that a consolidator can save it elsewhere, and what is absent
    here may be there; ``evictable``: what was restored is removed again when nobody uses it. ::

        short_term = RedisShortTerm(engine, tenant="acme")
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

    async def get_state(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The state of a session, or ``{}``."""
        if keys is None:
            return (await self.snapshot(session_id)).state
        state = self._keys(session_id).state
        wanted = list(check_keys("keys", keys))
        if not wanted:
            return {}
        ask = ("hmget", state, *[_MARK + key for key in wanted])
        return await self._read(session_id, ask, lambda texts: _state(wanted, texts))

    async def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Replace the whole state."""
        await self.put(replacing(session_id, state, ttl_seconds), expected_version=expected_version)

    async def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> None:
        """Merge a patch into the state."""
        await self.put(
            patching(session_id, patch, delete_keys, ttl_seconds), expected_version=expected_version
        )

    async def clear(self, session_id: str) -> None:
        """Remove the state of a session."""
        state = self._keys(session_id).state
        # Not safe to repeat: in between, somebody else's write would be removed by ours.
        await self._engine.command(state, "del", state, safe=False)

    async def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = None
    ) -> StateSnapshot:
        """The state with its version and its expiry."""
        state = self._keys(session_id).state
        if keys is None:
            return await self._read(session_id, ("hgetall", state), snapshot_of)
        wanted = list(check_keys("keys", keys))
        ask = ("hmget", state, "v", "x", "b", *[_MARK + key for key in wanted])
        return await self._read(
            session_id, ask, lambda found: _snapshot(_state(wanted, found[3:]), *found[:3])
        )

    async def restore(
        self,
        state: SavedState,
        *,
        base: int,
        unsaved: bool = False,
        as_of: datetime | None = None,
        eviction: int = 0,
    ) -> bool:
        """Bring a state back, unless it was written since; whether there is one now."""
        keys = self._keys(state.session)
        common = keys.common
        window, expires = "", ""
        if state.ttl_seconds is not None and state.expires_at is not None:
            window, expires = str(span(state.ttl_seconds)), str(microseconds(state.expires_at))
        pairs = [part for key, text in state.values.items() for part in (_MARK + key, text)]
        # Safe to repeat: there is a state then.
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
        """Remove a state that is still at a version."""
        keys = self._keys(session)
        gone = await self._run(
            "state_forget",
            (keys.state, keys.common.removed),
            (version, keys.name, span(REMOVED_SECONDS)),
            safe=False,
        )
        return bool(gone)

    async def merge(self, aside: AsideState, *, base: int | None = None) -> Written:
        """Do what was written aside, once."""
        write = aside.write
        keys = self._keys(write.session)
        pairs = [part for key, text in write.values.items() for part in (_MARK + key, text)]
        answer = await self._run(
            "state_merge",
            (keys.state, keys.common.versions, keys.common.dirty, keys.common.work, keys.aside),
            (
                *(aside.stamp, int(write.fresh), int(aside.cleared), int(write.gone)),
                "" if write.ttl_seconds is None else span(write.ttl_seconds),
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
        """Where a session lives."""
        return self._keys(session).common.shard

    async def put(
        self,
        write: StateWrite,
        *,
        expected_version: int | None = None,
        base: int | None = None,
        registered: int | None = None,
    ) -> Written:
        """Do a write that is checked already."""
        keys = self._keys(write.session)
        expected = check_optional_count("expected_version", expected_version)
        ttl = write.ttl_seconds
        window = "" if ttl is None else span(check_seconds("ttl_seconds", ttl))
        mode = "set" if write.fresh else "patch"
        args: list[Any] = [mode, "" if expected is None else expected, window, len(write.values)]
        for key, text in write.values.items():
            args += (_MARK + key, text)
        args += [_MARK + key for key in write.dropped]
        where: tuple[str, ...] = (keys.state, keys.common.versions)
        if self._snapshots:
            where += (keys.common.dirty, keys.common.work, keys.common.removed)
            args += ("" if base is None else base, self.writer)
            args.append("" if registered is None else registered)
            args += (keys.name, keys.common.tenant)
        # Not safe to repeat: in between, somebody else's write would be undone by ours.
        answer = await self._run("state_write", where, args, safe=False)
        if isinstance(answer, list):
            return Written(int(answer[0]), int(answer[1]))
        if answer == b"absent":
            raise AbsentStateError(write.session)
        if answer.startswith(b"unregistered "):
            raise UnregisteredError(write.session, eviction=int(answer.split()[1]))
        raise VersionConflictError(
            "state", write.session, expected=expected or 0, actual=int(answer)
        )

    async def _run(
        self, script: str, keys: Sequence[str], args: Sequence[Any], *, safe: bool
    ) -> Any:
        """A script; beside a durable store, what is damaged is moved out of its way."""
        try:
            return await self._engine.run(script, keys, args, safe=safe)
        except EngineError as error:
            # A script that failed over a value may have written before it.
            if not self._snapshots or not is_damage(error) or not await self._moved(keys):
                raise
        return await self._engine.run(script, keys, args, safe=safe)

    async def _read(self, session: str, ask: Sequence[Any], made: Callable[[Any], T]) -> T:
        """What is made of an answer about a state; one that cannot be read is moved, and absent."""
        state = self._keys(session).state
        try:
            return made(await self._engine.command(state, *ask, safe=True))
        except EngineError as error:
            if not self._snapshots or not is_damage(error) or not await self._moved([state]):
                raise
        except (ValueError, CodecError) as error:
            if not self._snapshots or not await self._moved([state]):
                raise CodecError(f"state {session!r} in Redis is damaged: {error}") from error
        return made(await self._engine.command(state, *ask, safe=True))

    async def _moved(self, keys: Sequence[str]) -> int:
        return await self._engine.part(Quarantine).check(keys)

    def _keys(self, session_id: str) -> SessionKeys:
        return SessionKeys.of(self._tenant, check_id("session_id", session_id), self._engine.shards)


def snapshot_of(answer: Any) -> StateSnapshot:
    """A whole state, from all fields of its HASH.

    >>> snapshot_of([b"v", b"7", b"=step", b"2"])
    StateSnapshot(state={'step': 2}, version=7, expires_at=None, degraded='', as_of=None)
    """
    fields = pairs_of(answer)
    version, expires = fields.pop(b"v", None), fields.pop(b"x", None)
    as_of = fields.pop(b"b", None)
    for own in (b"w", b"l", b"r", b"o", b"s", b"p"):
        fields.pop(own, None)
    found = {field[1:].decode(): decode_json(text) for field, text in fields.items()}
    return _snapshot(found, version, expires, as_of)


def _snapshot(state: dict[str, Any], version: Any, expires: Any, as_of: Any) -> StateSnapshot:
    return StateSnapshot(
        state,
        int(version or 0),
        None if expires is None else moment(expires),
        as_of=None if as_of is None else moment(as_of),
    )


def _state(keys: list[str], texts: list[bytes | None]) -> dict[str, Any]:
    return {
        key: decode_json(text) for key, text in zip(keys, texts, strict=True) if text is not None
    }
