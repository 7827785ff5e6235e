"""The turn log, in Redis Streams."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import SessionKeys, ShardKeys, encode
from holdfast.backends.redis.moments import moment
from holdfast.kernel.core.checks import check_count, check_id, check_ids
from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.storage.turnlog import (
    SEEN_SECONDS,
    Backlog,
    ClaimedTurn,
    LogPosition,
    TurnEntry,
    TurnLog,
    check_entries,
    check_entry,
    check_idle,
    check_position,
)

_ID = re.compile(r"(\d{1,4})-(\d{1,19}-\d{1,19})", re.ASCII)


class RedisTurnLog(TurnLog):
    """``TurnLog`` in one stream per shard with a consumer group; nothing in it ever expires.

    With ``shard`` it claims from, and tells about, that shard alone: consolidators share the shards
    among them. Without, all shards of a standalone server are one log, in the order of its clock;
    on Cluster they are taken one after the other. The group forgets a consumer that has nothing and
    was not heard of for ``forgotten_seconds``. ::

        log = RedisTurnLog(engine, tenant="acme")
    """

    def __init__(
        self,
        engine: Redis,
        *,
        tenant: str = "default",
        shard: int | None = None,
        forgotten_seconds: float = 3600,
    ) -> None:
        self._engine = engine
        self._forgotten_seconds = forgotten_seconds
        self._tenant = tenant
        chosen = range(engine.shards) if shard is None else (shard,)
        self._shards = [ShardKeys.of(tenant, one) for one in chosen]

    async def append(self, entry: TurnEntry) -> LogPosition:
        """Append one entry."""
        return (await self._append([check_entry(entry)]))[0]

    async def append_many(self, entries: Sequence[TurnEntry]) -> list[LogPosition]:
        """Append entries of one session in one step."""
        checked = check_entries(entries)
        return await self._append(checked) if checked else []

    async def _append(self, entries: list[TurnEntry]) -> list[LogPosition]:
        keys = SessionKeys.of(self._tenant, entries[0].session_id, self._engine.shards)
        digests: dict[str, str] = {}
        where = [keys.common.log, keys.meta, keys.common.tenants]
        batch: list[Any] = [self._tenant]
        for entry in entries:
            digest = hashlib.sha256(entry.payload).hexdigest()
            if entry.event_id not in digests:
                event = encode(entry.event_id)
                where.append(keys.seen + event)
                batch += (f"{keys.name}:{event}", digest, entry.payload)
            if digests.setdefault(entry.event_id, digest) != digest:
                raise _another(entry.event_id)
        # Safe to repeat: with the same id it is the same entry.
        answer = await self._engine.run("log_append", where, batch, safe=True)
        if isinstance(answer, int):
            raise _another(list(digests)[answer - 1])
        numbers = [int(number) for number in answer.split()]
        if len(entries) == 1:
            return [LogPosition(*numbers)]
        pairs = zip(digests, numbers[::2], numbers[1::2], strict=True)
        places = {event: LogPosition(epoch, seq) for event, epoch, seq in pairs}
        return [places[entry.event_id] for entry in entries]

    async def claim(
        self, consumer: str, *, limit: int = 500, min_idle_seconds: float = 60
    ) -> list[ClaimedTurn]:
        """A batch for one consumer."""
        check_id("consumer", consumer)
        check_count("limit", limit)
        idle = round(check_idle(min_idle_seconds) * 1000)
        found: list[ClaimedTurn] = []
        for shards in self._groups():
            if limit > len(found):
                # Safe to repeat: what the lost answer held is claimed again when it has been idle.
                turns = await self._engine.run(
                    "log_claim",
                    [shard.log for shard in shards],
                    (consumer, limit - len(found), idle, round(self._forgotten_seconds * 1000)),
                    safe=True,
                )
                found += [_turn(shards[log - 1].shard, *rest) for log, *rest in turns]
        return found

    async def acknowledge(self, ids: Sequence[str]) -> int:
        """Drop claimed entries."""
        wanted: dict[int, list[str]] = {}
        for one in dict.fromkeys(check_ids("ids", ids)):
            if (parts := _ID.fullmatch(one)) and int(parts[1]) < self._engine.shards:
                wanted.setdefault(int(parts[1]), []).append(parts[2])
        calls = []
        for shard, numbers in wanted.items():
            keys = ShardKeys.of(self._tenant, shard)
            calls.append(((keys.log,), (f"{keys.prefix}seen:", SEEN_SECONDS * 1000, *numbers)))
        # Safe to repeat: what is gone is gone, and only the count would tell.
        return sum(await self._engine.run_many("log_acknowledge", calls, safe=True))

    async def pending(self) -> Backlog:
        """How far the consumers are behind."""
        calls = [([shard.log for shard in shards], ()) for shards in self._groups()]
        counts = await self._engine.run_many("log_pending", calls, safe=True)
        unclaimed, claimed, ages = zip(*counts, strict=True)
        return Backlog(sum(unclaimed), sum(claimed), max(ages) / 1_000_000)

    async def advance(self, session_id: str, position: LogPosition) -> LogPosition:
        """Let a session go on after a place."""
        check_id("session_id", session_id)
        check_position(position)
        keys = SessionKeys.of(self._tenant, session_id, self._engine.shards)
        epoch, seq = await self._engine.run(
            "log_advance",
            (keys.meta, keys.common.tenants),
            (position.epoch, position.seq, self._tenant),
            safe=True,
        )
        return LogPosition(int(epoch), int(seq))

    def _groups(self) -> list[list[ShardKeys]]:
        """The shards that one script may look at together."""
        if self._engine.capabilities.mode == "cluster":
            return [[shard] for shard in self._shards]
        return [self._shards]


def _another(event_id: str) -> ConflictError:
    return ConflictError("event", event_id, f"the id {event_id!r} is another event's")


def _turn(shard: int, number: bytes, said: list[bytes], deliveries: int) -> ClaimedTurn:
    _, name, _, place, _, payload = said
    session, _, event = name.decode().partition(":")
    epoch, _, seq = place.decode().partition(" ")
    return ClaimedTurn(
        f"{shard}-{number.decode()}",
        TurnEntry(unquote(event), unquote(session), payload),
        LogPosition(int(epoch), int(seq)),
        moment(number.partition(b"-")[0]),
        deliveries,
    )
