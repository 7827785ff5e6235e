"""The quarantine: damaged values in Redis are detected and moved to separate keys.

The data in Postgres replaces them, as after Redis has lost its data. A moved value is kept
unchanged for a week under ``hf:{s07}:bad:<key>``; at most the newest hundred per shard.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.engines.redis.connections import pairs_of
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import ShardKeys
from holdfast.spi.hybrid.hot_entry import unpack
from holdfast.values.codec import decode_json
from holdfast.values.errors import CodecError, EngineError

_log = logging.getLogger("holdfast.redis")

KEPT_SECONDS = 7 * 86_400
"""How long a damaged value is kept."""

KEPT = 100
"""How many damaged values are kept per shard."""

_TYPES = {
    "hot": "stream",
    "ses": "hash",
    "win": "list",
    "late": "list",
    "evt": "string",
    "warm": "string",
    "st": "hash",
    "aside": "string",
    "versions": "string",
    "dirty": "zset",
    "work": "set",
    "idle": "zset",
    "clean": "zset",
    "removed": "zset",
}
"""The Redis type of each kind of key."""

_NUMBER = re.compile(rb"[0-9]{1,18}")
_PLACE = re.compile(rb"[0-9]{1,9} [0-9]{1,18}")
_HEAD = re.compile(rb"[0-9]+-[0-9]+ [0-9]{1,9} [0-9]{1,18}")
_SEEN = re.compile(rb"[0-9]{1,9} [0-9]{1,18} [0-9a-f]+( [0-9T:.+-]+)?")


def is_damage(error: BaseException) -> bool:
    """Return whether a script or command failed because of a damaged value.

    >>> is_damage(EngineError("redis", "WRONGTYPE Operation against a key"))
    True
    """
    text = str(error)
    return type(error) is EngineError and ("WRONGTYPE" in text or "script" in text)


class Quarantine:
    """Moves damaged values to the quarantine. All stores of an engine share one.

    ::

        await engine.singleton(Quarantine).guard(call, keys)
    """

    def __init__(self, engine: Redis) -> None:
        self._engine = engine

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    async def guard(self, call: Callable[[], Awaitable[Any]], keys: Iterable[str]) -> Any:
        """Run a call. If it fails because of damaged values, move them and run it again."""
        try:
            return await call()
        except EngineError as error:
            if not is_damage(error) or not await self.check(keys):
                raise
        return await call()

    async def check(self, keys: Iterable[str]) -> int:
        """Move the values of these keys that are damaged. Returns how many."""
        found = [key for key in dict.fromkeys(keys) if await self._is_damaged(key)]
        for key in found:
            await self._move(key)
        return len(found)

    async def _is_damaged(self, key: str) -> bool:
        kind = _kind(key)
        there = (await self._ask(key, "type", key)).decode()
        if there == "none":
            return False
        if there != _TYPES[kind]:
            return True
        try:
            return not await self._is_sound(kind, key)
        except (ValueError, CodecError):
            return True

    async def _is_sound(self, kind: str, key: str) -> bool:
        match kind:
            case "ses":
                return _is_session(pairs_of(await self._ask(key, "hgetall", key)))
            case "st":
                return _is_state(pairs_of(await self._ask(key, "hgetall", key)))
            case "win":
                values = await self._ask(key, "lrange", key, 0, -1)
                return all(map(_is_entry, values))
            case "late":
                return all(map(_HEAD.fullmatch, await self._ask(key, "lrange", key, 0, -1)))
            case "evt":
                return bool(_SEEN.fullmatch(await self._ask(key, "get", key) or b"0 0 0"))
            case "versions":
                return bool(_NUMBER.fullmatch(await self._ask(key, "get", key) or b"0"))
        return True

    async def _move(self, key: str) -> None:
        tag, kind = key[: key.index("}:") + 2], _kind(key)
        await self._engine.run(
            "quarantine",
            (key, f"{tag}bad:{key[len(tag) :]}", f"{tag}bad"),
            (KEPT_SECONDS, KEPT),
            safe=True,
        )
        _log.error("%s was damaged: moved to %sbad:%s", key, tag, key[len(tag) :])
        prefix, _, name = key.partition(f":{kind}:")
        match kind:
            case "win" | "late":
                # Flushed entries are read from Postgres again, unflushed ones from the log.
                await self._engine.run(
                    "quarantine_session",
                    (f"{prefix}:hot", f"{prefix}:ses:{name}", f"{prefix}:late:{name}"),
                    (name, int(kind == "late")),
                    safe=True,
                )
            case "st":
                # The state cannot be saved, and it no longer includes any fallback write.
                await self._ask(key, "zrem", f"{prefix}:dirty", name)
                await self._ask(key, "del", f"{prefix}:aside:{name}")
            case "dirty":
                await self._mark_states(key.removesuffix(":dirty"))
            case "work":
                await self._mark_work(tag, key)
            case "clean":
                await self._mark_clean(tag, key)

    async def _mark_states(self, prefix: str) -> None:
        """Mark all states of a tenant in a shard as dirty, since it is unknown which are saved."""
        for state in await self._scan(f"{prefix}:st:*"):
            if not await self._is_damaged(state):
                version = await self._ask(state, "hget", state, "v")
                name = state.partition(":st:")[2]
                await self._ask(state, "zadd", f"{prefix}:dirty", version, name)

    async def _mark_work(self, tag: str, work: str) -> None:
        """Mark all tenants of a shard that may have something to flush or save."""
        for kind in ("hot", "dirty"):
            for key in await self._scan(f"{tag}*:{kind}"):
                await self._ask(work, "sadd", work, key[len(tag) :].removesuffix(f":{kind}"))

    async def _mark_clean(self, tag: str, clean: str) -> None:
        """Mark all states of a shard as clean. The eviction detects those that are not saved."""
        seconds, _ = await self._ask(clean, "time")
        for state in await self._scan(f"{tag}*:st:*"):
            tenant, _, name = state[len(tag) :].partition(":st:")
            if not tenant.startswith("bad:"):
                score = int(seconds) * 1_000_000
                await self._ask(clean, "zadd", clean, score, f"{tenant}:{name}")

    async def _scan(self, pattern: str) -> list[str]:
        found: list[str] = []
        cursor: Any = 0
        while True:
            cursor, keys = await self._ask(pattern, "scan", cursor, "match", pattern, "count", 1000)
            found += [key.decode() for key in keys]
            if not int(cursor):
                return found

    async def _ask(self, key: str, *command: Any) -> Any:
        return await self._engine.command(key, *command, safe=True)


def shard_keys(tenant: str, shard: int) -> tuple[str, ...]:
    """Return the keys of a shard that all sessions of a tenant share.

    >>> shard_keys("acme", 7)[0]
    'hf:{s07}:acme:hot'
    """
    keys = ShardKeys.of(tenant, shard)
    idle = f"{keys.work.removesuffix('work')}idle"
    return f"{keys.prefix}hot", keys.versions, keys.dirty, keys.work, idle


def session_of(key: str) -> str:
    """Return the session that a key belongs to.

    >>> session_of("hf:{s09}:acme:st:a%3Ab")
    'a:b'
    """
    return unquote(key.rpartition(":")[2])


def _kind(key: str) -> str:
    """Return the kind of a key, such as ``st``.

    >>> _kind("hf:{s09}:acme:st:s1"), _kind("hf:{s09}:work")
    ('st', 'work')
    """
    parts = key.split(":")
    return parts[2] if len(parts) == 3 else parts[3]


def _is_session(fields: dict[bytes, bytes]) -> bool:
    numbers = (b"epoch", b"seq", b"limit", b"heat", b"pending")
    gaps = fields.get(b"lost", b"").split()
    return (
        all(_NUMBER.fullmatch(fields.get(name, b"")) for name in numbers)
        and bool(_PLACE.fullmatch(fields.get(b"floor") or b"0 0"))
        and all(map(_NUMBER.fullmatch, gaps))
    )


def _is_state(fields: dict[bytes, bytes]) -> bool:
    for name in (b"v", b"w", b"x", b"l", b"b", b"o", b"s", b"p"):
        if name in fields and not re.fullmatch(rb"[0-9.e+]+", fields[name]):
            return False
    if b"v" not in fields:
        return False
    for name, text in fields.items():
        if name.startswith(b"="):
            name.decode()
            decode_json(text.decode())
    return True


def _is_entry(value: bytes) -> bool:
    head, _, payload = value.partition(b"\n")
    unpack("s", payload)
    return bool(_HEAD.fullmatch(head))


def resp(fields: Sequence[bytes]) -> bytes:
    r"""Return the fields of a stream entry as the bytes of one RESP array.

    >>> resp([b"k", b"s1:e1"])
    b'*2\r\n$1\r\nk\r\n$5\r\ns1:e1\r\n'
    """
    parts = [b"$%d\r\n%s\r\n" % (len(field), field) for field in fields]
    return b"*%d\r\n" % len(parts) + b"".join(parts)
