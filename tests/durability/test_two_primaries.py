"""Two servers that both take writes, as while Sentinels disagree: `committed` has one order."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

import holdfast
from holdfast import ChatMessage, State
from holdfast.chaos.addresses import by_way_of
from holdfast.chaos.proxy import Proxy
from holdfast.engines.hybrid import circuit_breaker, consolidation
from holdfast.engines.hybrid.grants import Grants
from holdfast.engines.postgres import durable_log
from holdfast.engines.redis import scripts
from holdfast.errors import HoldfastError
from holdfast.testing.valkey_server import ValkeyServer
from tests.durability.promotions import ANA, COMMITTED, in_sync, said, say
from tests.engines.postgres_database import empty_database

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

READ = consolidation._read
FOUND = durable_log._found


@pytest.fixture
def pair() -> Iterator[tuple[ValkeyServer, ValkeyServer]]:
    """A primary and its replica."""
    primary = ValkeyServer(fsync="no")
    primary.start()
    replica = ValkeyServer("--replicaof", f"127.0.0.1 {primary.port}", fsync="no")
    replica.start()
    yield primary, replica
    primary.remove()
    replica.remove()


@asynccontextmanager
async def two_primaries(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> AsyncIterator[tuple[str, State, State, State]]:
    """A database, and states on the old primary, which still runs, on the replica, and without."""
    primary, replica = pair
    async with (
        empty_database() as url,
        holdfast.open(url, redis=primary.url, settings=COMMITTED) as old,
    ):
        for number in (1, 2):
            await say(old, number)
        await in_sync(primary, replica)
        assert replica.ask("REPLICAOF NO ONE") == "+OK"
        async with (
            holdfast.open(url, redis=replica.url, settings=COMMITTED) as new,
            holdfast.open(url, settings=COMMITTED) as durable,
        ):
            yield url, old, new, durable


async def test_events_are_in_the_order_of_their_commits(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    async with two_primaries(pair) as (_, old, new, durable):
        numbers = [1, 2]
        for number in range(3, 11):
            one = (old, new)[number % 2]
            await one.history.append(ANA, ChatMessage.user(f"{number}"), session_id="s1")
            numbers.append(number)
            assert await said(durable, 20) == [f"{at}" for at in numbers]


async def test_a_batch_follows_what_the_other_server_took(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    async with two_primaries(pair) as (_, old, new, durable):
        await new.history.append(ANA, ChatMessage.user("3"), session_id="s1")
        batch = [ChatMessage.user("4"), ChatMessage.user("5")]
        await old.history.append_many(ANA, batch, session_id="s1")
        assert await said(durable, 20) == ["1", "2", "3", "4", "5"]
        # A retry after a lost answer has no further effect, on either server.
        for one in (old, new):
            await one.history.append_many(ANA, batch, session_id="s1")
            assert await said(durable, 20) == ["1", "2", "3", "4", "5"]
        await new.history.append(ANA, ChatMessage.user("6"), session_id="s1")
        for one in (new, durable):
            assert await said(one, 20) == ["1", "2", "3", "4", "5", "6"]


async def test_what_is_cleared_on_one_server_does_not_come_back_from_the_other(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    async with two_primaries(pair) as (_, old, new, durable):
        await new.history.append(ANA, ChatMessage.user("3"), session_id="s1")
        await old.episodes.clear("s1")
        assert await said(durable, 20) == []
        await new.history.append(ANA, ChatMessage.user("4"), session_id="s1")
        await old.history.append(ANA, ChatMessage.user("5"), session_id="s1")
        assert await said(durable, 20) == ["4", "5"]


async def test_no_patch_is_undone(pair: tuple[ValkeyServer, ValkeyServer]) -> None:
    async with two_primaries(pair) as (_, old, new, _):
        keys = {"k1", "k2"}
        for number in range(3, 11):
            one = (old, new)[number % 2]
            await one.short_term.update_state("s1", {f"k{number}": number})
            keys.add(f"k{number}")
            assert set(await one.short_term.get_state("s1")) == keys


async def test_a_process_that_is_sent_back_reads_and_writes_behind_its_own_events(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    with pytest.MonkeyPatch.context() as later:
        # Reads are compared with Postgres for a while after a connection broke. This is later.
        later.setattr(circuit_breaker, "DOUBT_SECONDS", 0)
        await _send_back(pair)


async def _send_back(pair: tuple[ValkeyServer, ValkeyServer]) -> None:
    primary, replica = pair
    async with two_primaries(pair) as (url, _, new, durable):
        await new.history.append(ANA, ChatMessage.user("3"), session_id="s1")
        async with (
            Proxy("127.0.0.1", replica.port).listening() as proxy,
            holdfast.open(url, redis=by_way_of(primary.url, proxy.port), settings=COMMITTED) as one,
        ):
            await one.history.append(ANA, ChatMessage.user("4"), session_id="s1")
            await proxy.redirect(primary.port)
            assert await said(one, 3) == ["2", "3", "4"]
            await one.history.append(ANA, ChatMessage.user("5"), session_id="s1")
            assert await said(one, 3) == ["3", "4", "5"]
        assert await said(durable, 20) == ["1", "2", "3", "4", "5"]


async def test_an_event_follows_what_postgres_took_before_redis_was_advanced(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> None:
    primary, _ = pair
    async with (
        empty_database() as url,
        holdfast.open(url, redis=primary.url, settings=COMMITTED) as one,
        holdfast.open(url, settings=COMMITTED) as durable,
    ):
        numbers = [1]
        await one.history.append(ANA, ChatMessage.user("1"), session_id="s1")
        for number in range(2, 8):
            # As a process does while it cannot reach Redis.
            there = (one, durable)[number % 2]
            await there.history.append(ANA, ChatMessage.user(f"{number}"), session_id="s1")
            numbers.append(number)
            assert await said(durable, 20) == [f"{at}" for at in numbers]


def _store_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        consolidation, "_read", lambda turn: dataclasses.replace(READ(turn), awaited=False)
    )


def _keep_the_grant_of_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = dict(scripts._sources())
    window = sources["hot_window"].replace("there[3], there[4] = '0', '1'", "there[4] = '1'")
    assert window != sources["hot_window"]
    monkeypatch.setattr(scripts, "_sources", lambda: sources | {"hot_window": window})


def _forget_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grants, "compare_seen", lambda *_: None)


def _acknowledge_what_a_clear_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_log, "_found", lambda one, row: FOUND(one, [*row[:-1], False]))


@pytest.mark.parametrize(
    ("mutant", "scene"),
    [
        (_store_in_place, test_events_are_in_the_order_of_their_commits),
        (_store_in_place, test_a_batch_follows_what_the_other_server_took),
        (_store_in_place, test_an_event_follows_what_postgres_took_before_redis_was_advanced),
        (
            _keep_the_grant_of_another_server,
            test_what_is_cleared_on_one_server_does_not_come_back_from_the_other,
        ),
        (
            _acknowledge_what_a_clear_covers,
            test_what_is_cleared_on_one_server_does_not_come_back_from_the_other,
        ),
        (
            _forget_what_was_seen,
            test_a_process_that_is_sent_back_reads_and_writes_behind_its_own_events,
        ),
    ],
)
async def test_without_its_fence_a_promise_breaks(
    pair: tuple[ValkeyServer, ValkeyServer],
    monkeypatch: pytest.MonkeyPatch,
    mutant: Callable[[pytest.MonkeyPatch], None],
    scene: Callable[[tuple[ValkeyServer, ValkeyServer]], Awaitable[None]],
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, HoldfastError)):
        await scene(pair)
