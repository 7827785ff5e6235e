"""The hot log of one tenant, in Redis: a stream for each shard, a window for each session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import HotKeys, ShardKeys, encode
from holdfast.kernel.core.errors import BackPressureError
from holdfast.kernel.core.ids import new_ref
from holdfast.kernel.storage.durable_log import Gap, Grant, Known
from holdfast.kernel.storage.hot_entry import PlacedEntry, digest, pack, unpack
from holdfast.kernel.storage.hot_log import Appended, Cold, HotLog, Marks, UsedUp, Window
from holdfast.kernel.storage.log_entry import LogEntry, another_body
from holdfast.kernel.storage.turnlog import SEEN_SECONDS

_AT_ONCE = 1000


class RedisHotLog(HotLog):
    """``HotLog`` on a standalone server; a batch over several sessions is one script too.

    ::

        hot = RedisHotLog(engine, tenant="acme")
    """

    def __init__(
        self, engine: Redis, *, tenant: str = "default", marks: Marks | None = None
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._marks = marks or Marks()

    def shard_of(self, session: str) -> int:
        """Where a session lives."""
        return self._keys(session).shard

    async def append(self, entries: Sequence[LogEntry]) -> Appended | Cold | UsedUp:
        """Append entries with different keys, all or none."""
        sessions: dict[str, list[LogEntry]] = {}
        # In the order of their ids: so they begin when they begin together.
        for entry in sorted(entries, key=lambda one: one.session):
            sessions.setdefault(entry.session, []).append(entry)
        where: list[str] = []
        seen: list[str] = []
        given: list[Any] = []
        batch: list[LogEntry] = []
        own = [HotKeys.of(self._tenant, session, self._engine.shards) for session in sessions]
        for keys, turns in zip(own, sessions.values(), strict=True):
            where += (keys.log, keys.meta, keys.window, keys.work)
            for entry in turns:
                event, payload = encode(entry.id), pack(entry)
                seen.append(f"{keys.prefix}evt:{keys.name}:{event}")
                given += (f"{keys.name}:{event}", entry.agent, digest(payload), payload)
                batch.append(entry)
        counts = [len(turns) for turns in sessions.values()]
        marks = (self._marks.soft, self._marks.hard)
        # Safe to repeat: with the same id it is the same entry.
        status, *told = await self._engine.run(
            "hot_append",
            [*where, *seen],
            [own[0].tenant, *marks, len(own), *counts, *given],
            safe=True,
        )
        match status:
            case b"OK":
                crowded, places, *lasts = told
                return _appended(batch, own, int(crowded), places, lasts)
            case b"COLD":
                return Cold(list(sessions)[told[0] - 1])
            case b"LIMIT":
                return UsedUp(list(sessions)[told[0] - 1], int(told[1]), int(told[2]))
            case b"OTHER":
                other = batch[told[0] - 1]
                raise another_body(other.session, other.id)
        raise BackPressureError(retry_after_seconds=1.0)

    async def window(self, session: str) -> Window:
        """What is at hand of a session."""
        keys = self._keys(session)
        found = await self._engine.run("hot_window", (keys.meta, keys.window), (), safe=True)
        if not found:
            return Window()
        [epoch, seq, heat, cold, floor, acked, gaps], values = found
        entries = [_entry(session, value) for value in values]
        done = _turn(acked.decode() or "0-0")
        late = frozenset(one.entry.id for one in entries if _turn(one.mark) > done)
        low, high = (floor.decode() or "0 0").split()
        numbers = [int(number) for number in gaps.split()]
        return Window(
            hot=not cold,
            known=Known(int(epoch), int(seq), int(heat)),
            floor=(int(low), int(high)),
            entries=sorted(entries, key=lambda one: one.place),
            unflushed=late,
            gaps=tuple(Gap(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)),
        )

    async def tail(self, agent: str) -> list[PlacedEntry]:
        """What an agent has that is not flushed."""
        shards = [ShardKeys.of(self._tenant, one) for one in range(self._engine.shards)]
        found = await self._engine.run(
            "hot_tail",
            [f"{shard.prefix}hot" for shard in shards],
            [agent, *(shard.prefix for shard in shards)],
            safe=True,
        )
        return [
            _placed(unquote(name.decode().partition(":")[0]), mark.decode(), place, payload)
            for name, mark, place, payload in found
        ]

    async def lock(self, session: str, *, seconds: float) -> str:
        """Be the one who warms or clears a session."""
        keys, token = self._keys(session), new_ref()
        # Safe to repeat: at worst, the lock that a lost answer gave is waited for.
        taken = await self._engine.command(
            keys.warming,
            *("set", keys.warming, token, "nx", "px", round(seconds * 1000)),
            safe=True,
        )
        return token if taken else ""

    async def unlock(self, session: str, token: str) -> None:
        """Let the next one."""
        await self._engine.run("hot_unlock", (self._keys(session).warming,), (token,), safe=True)

    async def warm(
        self,
        session: str,
        grant: Grant,
        *,
        floor: tuple[int, int],
        entries: Sequence[PlacedEntry],
    ) -> None:
        """Take over the numbers of a session."""
        keys = self._keys(session)
        where = [keys.meta, keys.window]
        gaps = " ".join(f"{gap.epoch} {gap.from_seq} {gap.to_seq}" for gap in grant.gaps)
        given: list[Any] = [grant.epoch, grant.seq, grant.limit, grant.heat, gaps]
        given += (f"{floor[0]} {floor[1]}", SEEN_SECONDS * 1000)
        for one in entries:
            payload = pack(one.entry)
            where.append(keys.event(one.entry.id))
            given += (f"{one.epoch} {one.seq}", digest(payload), payload)
        # Safe to repeat: the same grant is not taken twice.
        await self._engine.run("hot_warm", where, given, safe=True)

    async def reserve(self, session: str, *, heat: int, limit: int) -> None:
        """Let the numbers of a session go further."""
        await self._engine.run("hot_reserve", (self._keys(session).meta,), (heat, limit), safe=True)

    async def forget(
        self, session: str, gone: Sequence[PlacedEntry], ids: dict[str, tuple[int, int]]
    ) -> None:
        """Drop entries from the window, and ids from what was seen."""
        keys = self._keys(session)
        places = {**ids, **{one.entry.id: one.place for one in gone}}
        listed = list(places.items())
        values = [f"{one.mark} {one.epoch} {one.seq}\n".encode() + pack(one.entry) for one in gone]
        while listed or values:
            part, listed = listed[:_AT_ONCE], listed[_AT_ONCE:]
            now, values = values[:_AT_ONCE], values[_AT_ONCE:]
            await self._engine.run(
                "hot_forget",
                [keys.window, *(keys.event(id_) for id_, _ in part)],
                [*(f"{epoch} {seq}" for _, (epoch, seq) in part), *now],
                safe=True,
            )

    async def flushed(self, shard: int, mark: str) -> bool:
        """Whether everything up to a turn has left the shard."""
        log = f"{ShardKeys.of(self._tenant, shard).prefix}hot"
        oldest = await self._engine.command(log, "xrange", log, "-", "+", "count", 1, safe=True)
        return not oldest or _turn(oldest[0][0].decode()) > _turn(mark)

    def _keys(self, session: str) -> HotKeys:
        return HotKeys.of(self._tenant, session, self._engine.shards)


def _appended(
    batch: Sequence[LogEntry],
    own: Sequence[HotKeys],
    crowded: int,
    places: bytes,
    lasts: Sequence[bytes],
) -> Appended:
    numbers = [int(number) for number in places.split()]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    marks: dict[int, str] = {}
    for keys, last in zip(own, lasts, strict=True):
        mark = last.decode()
        if mark and _turn(mark) > _turn(marks.get(keys.shard, "0-0")):
            marks[keys.shard] = mark
    found = {entry.key: place for entry, place in zip(batch, pairs, strict=True)}
    return Appended(found, marks, bool(crowded))


def _turn(mark: str) -> tuple[int, int]:
    number, _, part = mark.partition("-")
    return int(number), int(part)


def _entry(session: str, value: bytes) -> PlacedEntry:
    head, _, payload = value.partition(b"\n")
    mark, _, place = head.partition(b" ")
    return _placed(session, mark.decode(), place, payload)


def _placed(session: str, mark: str, place: bytes, payload: bytes) -> PlacedEntry:
    epoch, _, seq = place.partition(b" ")
    return PlacedEntry(unpack(session, payload), int(epoch), int(seq), mark)
