"""How subscribers on Postgres are woken: by notices, and without them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import asyncpg
import pytest

from holdfast.contracts.channel import Channel
from holdfast.engines.postgres.channel import PostgresChannels
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.listener import Listener, notice_digest
from holdfast.values.channels import ChannelEvent
from holdfast.values.errors import ConfigError
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def _engine(url: str, **how: Any) -> AsyncIterator[Postgres]:
    engine = await Postgres.open(url, auto_migrate=True, **how)
    try:
        yield engine
    finally:
        await engine.aclose()


async def _listening(engine: Postgres) -> None:
    async with asyncio.timeout(20):
        while not engine.singleton(Listener).hears:
            await asyncio.sleep(0.01)


async def _next(stream: AsyncGenerator[ChannelEvent, None]) -> ChannelEvent:
    async with asyncio.timeout(20):
        return await anext(stream)


async def test_a_subscriber_is_woken_by_a_notice_of_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Nobody looks without a notice while this test runs.
    monkeypatch.setattr("holdfast.engines.postgres.listener.LISTENING_POLL_SECONDS", 1000)
    async with (
        empty_database() as url,
        _engine(url) as engine,
        _engine(url) as other,
        aclosing(Channel(PostgresChannels(engine)).subscribe()) as stream,
    ):
        waiting = asyncio.create_task(_next(stream))
        await _listening(engine)
        sent = await Channel(PostgresChannels(other)).publish({"n": 1})
        assert await waiting == sent


async def test_a_pool_too_small_to_listen_is_polled() -> None:
    async with (
        empty_database() as url,
        _engine(url, max_connections=1) as engine,
        aclosing(Channel(PostgresChannels(engine)).subscribe()) as stream,
    ):
        for n in range(3):
            waiting = asyncio.create_task(_next(stream))
            await asyncio.sleep(0)
            assert await Channel(PostgresChannels(engine)).publish({"n": n}) == await waiting
        assert engine.singleton(Listener).hears is False


async def test_where_notices_do_not_arrive_subscribers_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As through a transaction pooler: LISTEN succeeds, and nothing comes of it.
    monkeypatch.setattr("holdfast.engines.postgres.listener.NOTICES", "nobody")
    monkeypatch.setattr("holdfast.engines.postgres.listener.ECHO_SECONDS", 0.05)
    async with (
        empty_database() as url,
        _engine(url) as engine,
        aclosing(Channel(PostgresChannels(engine)).subscribe()) as stream,
    ):
        waiting = asyncio.create_task(_next(stream))
        await asyncio.sleep(0.2)
        assert engine.singleton(Listener).hears is False
        assert await Channel(PostgresChannels(engine)).publish({"n": 1}) == await waiting


async def test_a_lost_connection_is_replaced_and_nothing_is_missed() -> None:
    async with (
        empty_database() as url,
        _engine(url) as engine,
        connected(url) as admin,
        aclosing(Channel(PostgresChannels(engine)).subscribe()) as stream,
    ):
        for n in range(3):
            waiting = asyncio.create_task(_next(stream))
            await _listening(engine)
            killed = await admin.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert killed > 0
            assert await Channel(PostgresChannels(engine)).publish({"n": n}) == await waiting
        await _listening(engine)


async def test_closing_the_engine_ends_its_subscribers_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.engines.postgres.listener.LISTENING_POLL_SECONDS", 1000)
    async with empty_database() as url:
        async with _engine(url) as engine:
            stream = Channel(PostgresChannels(engine)).subscribe()
            waiting = asyncio.create_task(_next(stream))
            await _listening(engine)
        with pytest.raises(ConfigError):
            await waiting


async def test_a_notice_does_not_tell_a_stranger_what_it_is_about() -> None:
    heard: list[str] = []
    async with empty_database() as url, _engine(url) as engine, connected(url) as stranger:
        await stranger.execute("CREATE ROLE notice_stranger")
        try:
            await stranger.execute("SET ROLE notice_stranger")
            await stranger.add_listener("holdfast", lambda *notice: heard.append(notice[-1]))
            channels = Channel(PostgresChannels(engine, tenant="victim"), name="merger-with-globex")
            await channels.publish({"n": 1})
            await channels.publish({"n": 2})
            async with asyncio.timeout(20):
                while len(heard) < 2:
                    await asyncio.sleep(0.01)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await stranger.fetch("SELECT key FROM holdfast.notice_key")
        finally:
            await stranger.execute("RESET ROLE")
            await stranger.execute("DROP ROLE notice_stranger")
    assert not [one for one in heard if "victim" in one or "merger" in one]
    assert heard[0] == heard[1]
    # Whoever may read no key cannot check a guess either.
    guess = notice_digest(b"", "victim\nmerger-with-globex")
    assert guess != heard[0]
