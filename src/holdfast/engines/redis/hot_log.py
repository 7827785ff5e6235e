"""The newest events of one tenant in Redis: a stream per shard, and a list per session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import unquote

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import HotKeys, SessionKeys, ShardKeys, encode
from holdfast.engines.redis.quarantine import Quarantine, is_damage
from holdfast.engines.redis.short_term import snapshot_of
from holdfast.spi.hybrid.durable_log import Grant, Known, Reserved
from holdfast.spi.hybrid.hot_entry import (
    PositionedEntry,
    digest,
    digest_with_time,
    pack,
    unpack,
)
from holdfast.spi.hybrid.hot_log import (
    SEEN_SECONDS,
    Appended,
    Cold,
    HotLog,
    Marks,
    UsedUp,
    Window,
)
from holdfast.spi.log_entry import LogEntry, another_body
from holdfast.values.errors import BackPressureError, CodecError, EngineError
from holdfast.values.ids import new_ref
from holdfast.values.states import StateSnapshot
from holdfast.values.wakes import Gap

_AT_ONCE = 1000
T = TypeVar("T")


class RedisHotLog(HotLog):
    """The hot log of one tenant in Redis, which holds new events until they are in Postgres.

    A batch is one script call. On a cluster all sessions of a batch must be in one shard.

    ::

        hot = RedisHotLog(engine, tenant="acme")
    """

    def __init__(
        self,
        engine: Redis,
        *,
        tenant: str = "default",
        marks: Marks | None = None,
        writer: str = "",
    ) -> None:
        self._engine = engine
        self._quarantine = engine.singleton(Quarantine)
        self._tenant = tenant
        self._marks = marks or Marks()
        self.writer = writer
        self.divided = engine.divided
        self._room = min(self._marks.soft, self._marks.hard)

    def shard_of(self, session: str) -> int:
        """Return the shard of a session."""
        return self._keys(session).shard

    async def append(self, entries: Sequence[LogEntry]) -> Appended | Cold | UsedUp:
        """Append entries with different keys, all or none. Returns why, if nothing was written."""
        if len(entries) == 1 and (appended := await self._append_one(entries[0])):
            return appended
        sessions: dict[str, list[LogEntry]] = {}
        # By session id: new sessions of one batch are then also created in this order.
        for entry in sorted(entries, key=lambda one: one.session):
            sessions.setdefault(entry.session, []).append(entry)
        where: list[str] = []
        seen: list[str] = []
        given: list[Any] = []
        batch: list[LogEntry] = []
        own = [HotKeys.of(self._tenant, session, self._engine.shards) for session in sessions]
        for keys, turns in zip(own, sessions.values(), strict=True):
            where += (keys.log, keys.meta, keys.late, keys.work)
            for entry in turns:
                event, payload = encode(entry.id), pack(entry)
                seen.append(f"{keys.prefix}evt:{keys.name}:{event}")
                given += (f"{keys.name}:{event}", entry.agent, _remembered(entry), payload)
                batch.append(entry)
        counts = [len(turns) for turns in sessions.values()]
        marks = (self._marks.soft, self._marks.hard)
        head = (own[0].tenant, *marks, len(own), self.writer)
        # Safe to repeat: with the same id it is the same entry.
        answer = await self._run("hot_append", [*where, *seen], [*head, "", *counts, *given])
        if answer[0] == b"OLDER":
            older = "".join(map(digest_with_time, batch))
            answer = await self._run("hot_append", [*where, *seen], [*head, older, *counts, *given])
        if answer[0] == b"OK":
            _, crowded, positions, marks = answer
            return _appended(batch, crowded, positions, marks)
        return _refused(answer, list(sessions), batch)

    async def _append_one(self, entry: LogEntry) -> Appended | None:
        """Append one entry in the common case. Otherwise write nothing and return ``None``."""
        keys = HotKeys.of(self._tenant, entry.session, self._engine.shards)
        name, payload = f"{keys.name}:{encode(entry.id)}", pack(entry)
        # Safe to repeat: a known id is not appended here.
        head = await self._run(
            "hot_append_one",
            (keys.log, keys.meta, keys.late, keys.work, f"{keys.prefix}evt:{name}"),
            (keys.tenant, self._room, name, entry.agent, _remembered(entry), payload, self.writer),
        )
        if head is None:
            return None
        mark, epoch, seq = head.split()
        key = entry.key
        return Appended({key: (int(epoch), int(seq))}, {key: mark.decode()})

    async def window(self, session: str, *, last: int | None = None) -> Window:
        """Return the entries of a session that are in Redis; with ``last``, only the newest."""
        keys = self._keys(session)
        where = (keys.meta, keys.window, keys.late, keys.log)
        args = () if last is None else (last,)
        return await self._read(where, args, lambda found: _window(session, found, last))

    async def look(self, session: str) -> tuple[Window, StateSnapshot]:
        """Return the entries in Redis and the working state of a session."""
        keys = self._keys(session)
        state = SessionKeys.of(self._tenant, session, self._engine.shards).state
        where = (keys.meta, keys.window, keys.late, keys.log, state)
        return await self._read(
            where, (), lambda found: (_window(session, found), snapshot_of(found[3]))
        )

    async def tail(self, agent: str | None) -> list[PositionedEntry]:
        """Return the entries of one agent, or of all, that are not in Postgres yet."""
        shards = [ShardKeys.of(self._tenant, one) for one in range(self._engine.shards)]
        answers = await asyncio.gather(
            *(
                self._run(
                    "hot_tail",
                    [f"{shard.prefix}hot" for shard in part],
                    [agent or "", *(shard.prefix for shard in part)],
                )
                for part in ([[one] for one in shards] if self.divided else [shards])
            )
        )
        return [
            one
            for found in answers
            for name, mark, position, payload in found
            if (one := _readable(name.partition(b":")[0], mark + b" " + position, payload))
        ]

    async def lock(self, session: str, *, seconds: float) -> str:
        """Acquire a session's lock for ``seconds``. Returns its token, or ``""`` if it is held."""
        keys, token = self._keys(session), new_ref()
        # Safe to retry: at worst the caller waits for the lock whose reply was lost.
        taken = await self._engine.command(
            keys.lock,
            *("set", keys.lock, token, "nx", "px", round(seconds * 1000)),
            safe=True,
        )
        return token if taken else ""

    async def unlock(self, session: str, token: str) -> None:
        """Release the lock."""
        await self._engine.run("hot_unlock", (self._keys(session).lock,), (token,), safe=True)

    async def load(
        self,
        session: str,
        grant: Grant,
        *,
        floor: tuple[int, int],
        entries: Sequence[PositionedEntry],
    ) -> None:
        """Store a session in Redis with its grant and its newest entries."""
        keys = self._keys(session)
        where = [keys.meta, keys.window, keys.late, keys.idle]
        given: list[Any] = [
            grant.epoch,
            grant.seq,
            grant.limit,
            grant.grant_version,
            _text(grant.gaps),
        ]
        given += (f"{floor[0]} {floor[1]}", SEEN_SECONDS * 1000, keys.member)
        for one in entries:
            where.append(keys.event(one.entry.id))
            given += (f"{one.epoch} {one.seq}", _remembered(one.entry), pack(one.entry))
        # Safe to repeat: the same grant is not applied twice.
        await self._run("hot_load", where, given)

    async def set_gaps(self, session: str, gaps: Sequence[Gap]) -> None:
        """Set which ranges of a session's events are lost."""
        await self._run("hot_lost", (self._keys(session).meta,), (_text(gaps),))

    async def known(self, sessions: Sequence[str]) -> dict[str, int]:
        """Return the grant versions of those sessions that are loaded in Redis."""
        known: dict[str, int] = {}
        for part in self._parts(sessions, lambda one: one):
            found = await self._run("hot_known", [self._keys(one).meta for one in part], ())
            known |= {one: int(heat) for one, heat in zip(part, found, strict=True) if heat}
        return known

    async def reserve(self, session: str, *, grant_version: int, reserved: Reserved) -> None:
        """Raise the limit up to which Redis may number a session's events."""
        given = (grant_version, reserved.limit, " ".join(reserved.writers))
        await self._run("hot_reserve", (self._keys(session).meta,), given)

    async def forget(
        self, session: str, gone: Sequence[PositionedEntry], ids: dict[str, tuple[int, int]]
    ) -> None:
        """Delete entries of a session, and the stored positions of event ids."""
        keys = self._keys(session)
        positions = {**ids, **{one.entry.id: one.position for one in gone}}
        listed = list(positions.items())
        values = [f"{one.mark} {one.epoch} {one.seq}\n".encode() + pack(one.entry) for one in gone]
        while listed or values:
            part, listed = listed[:_AT_ONCE], listed[_AT_ONCE:]
            now, values = values[:_AT_ONCE], values[_AT_ONCE:]
            await self._run(
                "hot_forget",
                [keys.window, keys.late, *(keys.event(id_) for id_, _ in part)],
                [*(f"{epoch} {seq}" for _, (epoch, seq) in part), *now],
            )

    async def missing(self, entries: Sequence[PositionedEntry]) -> list[PositionedEntry]:
        """Return those of the entries that are no longer in the streams."""
        gone: list[PositionedEntry] = []
        for part in self._parts(entries, lambda one: one.entry.session):
            where: list[str] = []
            given: list[str] = []
            for one in part:
                keys = self._keys(one.entry.session)
                where += (keys.log, keys.late)
                name = f"{keys.name}:{encode(one.entry.id)}"
                given += (one.mark, f"{one.epoch} {one.seq}", name)
            found = await self._run("hot_missing", where, given)
            gone += [part[at - 1] for at in found]
        return gone

    def _parts(self, of: Sequence[T], session: Callable[[T], str]) -> Iterator[Sequence[T]]:
        """Split a batch for script calls: a limited number each, and of one shard on a cluster."""
        shards: dict[int, list[T]] = {}
        for one in of:
            shards.setdefault(self.shard_of(session(one)) if self.divided else 0, []).append(one)
        for part in shards.values():
            for start in range(0, len(part), _AT_ONCE):
                yield part[start : start + _AT_ONCE]

    async def _run(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run an idempotent script. If values are damaged, quarantine them and run it again."""
        try:
            return await self._engine.run(script, keys, args, safe=True)
        except EngineError as error:
            if not is_damage(error) or not await self._quarantine.check(keys):
                raise
        return await self._engine.run(script, keys, args, safe=True)

    async def _read(self, keys: Sequence[str], args: Sequence[Any], made: Callable[[Any], T]) -> T:
        """Read a session's entries. Unreadable ones are quarantined and count as absent."""
        found = await self._run("hot_window", keys, args)
        try:
            return made(found)
        except (ValueError, CodecError) as error:
            if not await self._quarantine.check(keys):
                raise CodecError(f"redis: a session cannot be read: {error}") from error
        return made(await self._run("hot_window", keys, args))

    def _keys(self, session: str) -> HotKeys:
        return HotKeys.of(self._tenant, session, self._engine.shards)


def _appended(batch: Sequence[LogEntry], crowded: int, positions: bytes, marks: bytes) -> Appended:
    numbers = [int(number) for number in positions.split()]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    found = Appended({}, {}, bool(crowded))
    for entry, position, mark in zip(batch, pairs, marks.decode().split(), strict=True):
        key, is_known = entry.key, mark[0] == "-"
        found.positions[key], found.marks[key] = position, "" if is_known else mark
        if is_known:
            found.first[key] = datetime.fromisoformat(mark[1:])
    return found


def _remembered(entry: LogEntry) -> str:
    """Return the value that is stored under an event's id with its position: digest and time."""
    return f"{digest(entry)} {entry.occurred_at.isoformat()}"


def _refused(
    answer: Sequence[Any], sessions: Sequence[str], batch: Sequence[LogEntry]
) -> Cold | UsedUp:
    """Return why nothing was written, or raise it as an error."""
    match answer:
        case b"COLD", at:
            return Cold(sessions[at - 1])
        case b"LIMIT", at, grant_version, epoch:
            return UsedUp(sessions[at - 1], int(grant_version), int(epoch))
        case b"OTHER", at:
            other = batch[at - 1]
            raise another_body(other.session, other.id)
    raise BackPressureError(retry_after_seconds=1.0)


def _window(session: str, found: Sequence[Any], last: int | None = None) -> Window:
    about, durable, waiting, _ = found
    if not about:
        return Window(orphaned=bool(waiting))
    epoch, seq, grant_version, cold, floor, gaps = about
    name = encode(session).encode()
    # An unreadable unflushed entry is skipped here. The consolidator makes it a dead letter.
    late = [one for value in waiting if (one := _readable(name, *value.split(b"\n", 1)))]
    entries = [*(_entry(session, value) for value in durable), *late]
    low, high = (floor.decode() or "0 0").split()
    numbers = [int(number) for number in gaps.split()]
    return Window(
        hot=not cold,
        known=Known(int(epoch), int(seq), int(grant_version)),
        floor=(int(low), int(high)),
        entries=sorted(entries, key=lambda one: one.position),
        unflushed=frozenset(one.entry.id for one in late),
        cut=last in {len(durable), len(waiting)},
        gaps=tuple(
            Gap(numbers[at], numbers[at + 1], numbers[at + 2], certain=bool(numbers[at + 3]))
            for at in range(0, len(numbers), 4)
        ),
    )


def _entry(session: str, value: bytes) -> PositionedEntry:
    head, _, payload = value.partition(b"\n")
    mark, _, position = head.partition(b" ")
    return _positioned(session, mark.decode(), position, payload)


def _text(gaps: Sequence[Gap]) -> str:
    """Return gaps in the text format in which a session stores them."""
    return " ".join(f"{gap.epoch} {gap.from_seq} {gap.to_seq} {int(gap.certain)}" for gap in gaps)


def _readable(name: bytes, head: bytes, payload: bytes) -> PositionedEntry | None:
    """Return an entry of the log, or ``None`` if it cannot be read."""
    mark, _, position = head.partition(b" ")
    try:
        return _positioned(unquote(name.decode()), mark.decode(), position, payload)
    except (ValueError, CodecError):
        return None


def _positioned(session: str, mark: str, position: bytes, payload: bytes) -> PositionedEntry:
    epoch, _, seq = position.partition(b" ")
    return PositionedEntry(unpack(session, payload), int(epoch), int(seq), mark)
