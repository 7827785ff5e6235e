"""The events of all tenants in Redis that consolidators move to Postgres."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import HotKeys, ShardKeys, encode
from holdfast.engines.redis.quarantine import Quarantine, resp, shard_keys
from holdfast.engines.redis.timestamps import duration
from holdfast.spi.hybrid.durable_log import Outcome
from holdfast.spi.hybrid.hot_log import SEEN_SECONDS, WINDOW, HotQueue, HotStats, HotTurn, Work
from holdfast.values.checks import check_id
from holdfast.values.errors import InvalidInputError

SUSPECT_DELIVERIES = 5
"""A turn that was delivered this often is then delivered alone, as it may crash its consumers."""

BATCH_BYTES = 16 << 20
_CONSUMER = "consolidator"
_HOW = {Outcome.STORED: 1, Outcome.COVERED: 0, Outcome.KNOWN: 0, Outcome.DEAD: 2}


class RedisHotQueue(HotQueue):
    """The queue of unflushed events over the streams of all shards, for consolidators.

    ``window`` is how many events of a session stay in Redis after the flush. Once the session is
    idle, they stay for ``window_seconds``. ::

        queue = RedisHotQueue(engine)
    """

    def __init__(
        self, engine: Redis, *, window: int = WINDOW, window_seconds: float = 3600
    ) -> None:
        self._engine = engine
        self._quarantine = engine.singleton(Quarantine)
        self._window = window
        self.window_seconds = window_seconds

    async def work(self, *, rested_seconds: float, unused_seconds: float = 0) -> Work:
        """Return which shards to flush, which sessions to unload, and which states to evict."""
        tags = [_tag(shard) for shard in range(self._engine.shards)]
        spans = (duration(rested_seconds), duration(unused_seconds) if unused_seconds else "")
        calls = [((f"{tag}work", f"{tag}idle", f"{tag}clean"), spans) for tag in tags]
        answers = await self._quarantine.guard(
            lambda: self._engine.run_many("hot_work", calls, safe=True),
            [key for keys, _ in calls for key in keys],
        )
        flush: list[tuple[str, int]] = []
        idle: list[tuple[str, str]] = []
        clean: dict[tuple[str, int], list[str]] = {}
        for shard, (tenants, resting, unused) in enumerate(answers):
            flush += [(unquote(tenant.decode()), shard) for tenant in tenants]
            idle += map(_session, resting)
            for tenant, session in map(_session, unused):
                clean.setdefault((tenant, shard), []).append(session)
        states = ((*where, tuple(sessions)) for where, sessions in clean.items())
        return Work(tuple(flush), tuple(idle), tuple(states))

    async def length(self, tenant: str, shard: int) -> int:
        """Return the number of turns in a shard."""
        log = f"{ShardKeys.of(tenant, shard).prefix}hot"
        waiting = await self._quarantine.guard(
            lambda: self._engine.command(log, "xlen", log, safe=True), [log]
        )
        return int(waiting)

    async def claim(self, tenant: str, shard: int, *, limit: int) -> list[HotTurn]:
        """Claim the oldest turns of a shard."""
        log = f"{ShardKeys.of(tenant, shard).prefix}hot"
        # Safe to repeat: the turns of the lost reply are delivered again.
        given = (_CONSUMER, limit, SUSPECT_DELIVERIES, BATCH_BYTES)
        turns = await self._quarantine.guard(
            lambda: self._engine.run("hot_claim", (log,), given, safe=True),
            shard_keys(tenant, shard),
        )
        return [_turn(shard, *turn) for turn in turns]

    async def give_back(self, tenant: str, shard: int, turns: Sequence[HotTurn]) -> None:
        """Do not count this delivery of claimed turns: subtract one from their delivery counts."""
        given: list[Any] = [_CONSUMER]
        for turn in turns:
            given += (turn.mark, turn.deliveries)
        # Safe to repeat: the script compares the delivery count.
        log = f"{ShardKeys.of(tenant, shard).prefix}hot"
        await self._engine.run("hot_give_back", (log,), given, safe=True)

    async def acknowledge(
        self, tenant: str, shard: int, turns: Sequence[tuple[HotTurn, Outcome]]
    ) -> None:
        """Delete turns from the stream that are stored in Postgres."""
        keys = ShardKeys.of(tenant, shard)
        tag = _tag(shard)
        given: list[Any] = [encode(tenant), keys.prefix, self._window, SEEN_SECONDS * 1000]
        for turn, outcome in turns:
            given += (turn.mark, encode(turn.session), encode(turn.event_id), _HOW[outcome])
        where = (f"{keys.prefix}hot", f"{tag}work", f"{tag}idle", keys.dirty)
        touched = [*shard_keys(tenant, shard)]
        for turn, _ in turns:
            session = HotKeys.of(tenant, turn.session, self._engine.shards)
            touched += (session.meta, session.window, session.late, session.event(turn.event_id))
        # Safe to repeat: a deleted turn stays deleted.
        await self._quarantine.guard(
            lambda: self._engine.run("hot_acknowledge", where, given, safe=True), touched
        )

    async def unload(self, tenant: str, session: str) -> int | None:
        """Mark an idle session as unloaded. Returns its grant version, or ``None`` if busy."""
        keys = HotKeys.of(tenant, session, self._engine.shards)
        grant_version = await self._quarantine.guard(
            lambda: self._engine.run(
                "hot_unload", (keys.meta, keys.idle), (keys.member,), safe=True
            ),
            (keys.meta, keys.idle),
        )
        return None if grant_version is None else int(grant_version)

    async def unloaded(
        self, tenant: str, session: str, *, grant_version: int, keep: bool = True
    ) -> None:
        """Set the expiry of an unloaded session's events; with ``keep=False``, delete them."""
        keys = HotKeys.of(tenant, session, self._engine.shards)
        await self._engine.run(
            "hot_unloaded",
            (keys.meta, keys.window, keys.idle),
            # A key that expires now is deleted.
            (keys.member, grant_version, round(self.window_seconds * 1000) if keep else 0),
            safe=True,
        )

    async def stats(self) -> HotStats:
        """Return the size and age of the backlog."""
        tags = [_tag(shard) for shard in range(self._engine.shards)]
        calls = [((f"{tag}work", f"{tag}bad"), (tag,)) for tag in tags]
        answers = await self._quarantine.guard(
            lambda: self._engine.run_many("hot_stats", calls, safe=True),
            [f"{tag}work" for tag in tags],
        )
        filled = map(_filled, await self._engine.call_each("info", "memory"))
        waiting: Counter[str] = Counter()
        for _, _, _, by_tenant in answers:
            for tenant, used in zip(by_tenant[::2], by_tenant[1::2], strict=True):
                waiting[unquote(tenant.decode())] += used
        return HotStats(
            sum(count for count, _, _, _ in answers),
            max(0, *(age for _, age, _, _ in answers)) / 1000,
            max(filled),
            sum(moved for _, _, moved, _ in answers),
            waiting,
        )


def _filled(about: bytes) -> float:
    """Return the share of ``maxmemory`` that a server uses; 0 if it has no ``maxmemory``."""
    memory = dict(line.split(b":", 1) for line in about.splitlines() if b":" in line)
    most = int(memory.get(b"maxmemory", 0))
    return int(memory[b"used_memory"]) / most if most else 0.0


def _session(member: bytes) -> tuple[str, str]:
    """Return the tenant and the session that a member of a shard's set names."""
    tenant, _, session = member.decode().partition(":")
    return unquote(tenant), unquote(session)


def _tag(shard: int) -> str:
    return f"hf:{{s{shard:02}}}:"


def _turn(shard: int, mark: bytes, said: list[bytes], deliveries: int) -> HotTurn:
    """Return the turn of a stream entry.

    An unreadable entry becomes a turn with all its bytes, named by its stream id.
    """
    turn = mark.decode()
    try:
        _, name, kind, position, _, _, _, payload = said
        session, _, event = name.decode().partition(":")
        epoch, seq = map(int, position.decode().split(" "))
        session, event = check_id("session", unquote(session)), check_id("event", unquote(event))
        epoch.to_bytes(4, signed=True)  # the integer types of Postgres
        seq.to_bytes(8, signed=True)
    except (ValueError, OverflowError, InvalidInputError):
        return HotTurn(turn, "", f"stream entry {shard}/{turn}", 0, 0, resp(said), deliveries)
    return HotTurn(turn, session, event, epoch, seq, payload, deliveries, kind == b"c")
