"""How subscribers are woken, and what is left of a channel that nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from holdfast.contracts.channel import Channel
from holdfast.engines.redis.channel import RedisChannels
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.listener import Listener
from holdfast.values.channels import ChannelEvent
from holdfast.values.errors import ConfigError
from holdfast.values.ids import new_ref
from tests.engines.redis import RedisHarness, cluster, server
from tests.engines.redis_engine import bare, engine, own_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _listening(opened: Redis) -> None:
    async with asyncio.timeout(20):
        while not opened.singleton(Listener).hears:
            await asyncio.sleep(0.01)


async def _next(stream: AsyncGenerator[ChannelEvent, None]) -> ChannelEvent:
    async with asyncio.timeout(20):
        return await anext(stream)


async def _wake(waiting: asyncio.Task[ChannelEvent], channel: Channel) -> ChannelEvent:
    """Publish until the subscriber has the first event: a message between nodes may be lost."""
    first = await channel.publish({"n": 0})
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=1)
        if not waiting.done():
            await channel.publish({"n": "again"})
    return first


@pytest.fixture
def only_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who hears looks without a word."""
    monkeypatch.setattr("holdfast.engines.redis.listener.LISTENING_POLL_SECONDS", 1000)


@pytest.mark.usefixtures("only_words")
@pytest.mark.parametrize("clustered", [False, True])
async def test_a_subscriber_is_woken_by_a_word_of_another_process(clustered: bool) -> None:
    url = cluster().url if clustered else ""
    async with engine(url) as opened, engine(url or server().url) as other:
        tenant, names = new_ref(), [f"n{at}" for at in range(8)]
        streams = [
            Channel(RedisChannels(opened, tenant=tenant), name=name).subscribe() for name in names
        ]
        waiting = [asyncio.create_task(_next(stream)) for stream in streams]
        await _listening(opened)
        sent = [
            await _wake(task, Channel(RedisChannels(other, tenant=tenant), name=name))
            for task, name in zip(waiting, names, strict=True)
        ]
        assert await asyncio.gather(*waiting) == sent
        for stream in streams:
            await stream.aclose()


@pytest.mark.usefixtures("only_words")
async def test_a_subscriber_goes_on_when_its_connections_were_cut() -> None:
    async with engine() as opened, bare() as client:
        channel = Channel(RedisChannels(opened))
        async with aclosing(channel.subscribe()) as stream:
            for at in range(3):
                waiting = asyncio.create_task(_next(stream))
                await _listening(opened)
                await client.client_kill_filter(_type="pubsub")
                await client.client_kill_filter(_type="normal", skipme=True)
                sent = await channel.publish({"n": at})
                assert await waiting == sent


async def test_who_may_not_ring_the_bell_is_heard_all_the_same() -> None:
    with own_server() as own:
        async with bare(own.url) as client:
            await client.acl_setuser(
                "app", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all"]
            )
        async with engine(f"redis://app:secret@127.0.0.1:{own.port}") as opened:
            channel = Channel(RedisChannels(opened))
            async with aclosing(channel.subscribe()) as stream:
                waiting = asyncio.create_task(_next(stream))
                await asyncio.sleep(0)
                sent = await channel.publish({"n": 1})
                assert await waiting == sent


async def test_a_waiting_subscriber_learns_that_the_engine_is_closed() -> None:
    async with engine() as opened:
        stream = Channel(RedisChannels(opened)).subscribe()
        waiting = asyncio.create_task(_next(stream))
        await _listening(opened)
        await opened.aclose()
        with pytest.raises(ConfigError, match="closed"):
            await waiting


async def test_all_subscribers_of_an_engine_listen_on_one_connection() -> None:
    async with engine() as opened, bare() as client:
        streams = [Channel(RedisChannels(opened), name=f"n{at}").subscribe() for at in range(20)]
        waiting = [asyncio.create_task(_next(stream)) for stream in streams]
        await _listening(opened)
        assert len(await client.client_list(_type="pubsub")) == 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with asyncio.timeout(20):
            while await client.pubsub_channels():
                await asyncio.sleep(0.01)


async def test_a_channel_that_nobody_uses_is_forgotten_except_for_its_number() -> None:
    harness = RedisHarness()
    await harness.open()
    channel = harness.store("channels", retention_seconds=60)
    [*_, last] = [await channel.publish({"n": at}) for at in range(5)]
    await harness.elapse(61)
    async with bare() as client:
        left = sorted(await client.keys("*:default:*"))
        assert [key.split(b":")[3] for key in left] == [b"chno"]
    assert await channel.tail() == last.cursor
    await harness.close()


async def test_a_server_that_lost_everything_never_gives_a_cursor_again() -> None:
    async with engine() as opened, bare() as client:
        channel = Channel(RedisChannels(opened))
        [*_, old] = [await channel.publish({"n": at}) for at in range(3)]
        await client.flushall()
        new = await channel.publish({})
        assert int(new.cursor) > int(old.cursor)
        assert await channel.read(cursor=old.cursor) == [new]


async def test_what_expired_in_great_number_is_dropped_bit_by_bit() -> None:
    harness = RedisHarness()
    await harness.open()
    short = harness.store("channels", retention_seconds=1)
    long = harness.store("channels", retention_seconds=1000)
    kept = await long.publish({"n": "kept"})
    await asyncio.gather(*(short.publish({"n": at}) for at in range(1500)))
    newest = await long.publish({"n": "newest"})
    await harness.elapse(2)
    assert await long.read() == [kept, newest]
    assert await long.read() == [kept, newest]
    async with bare() as client:
        [events] = await client.keys("*:chan:*")
        assert await client.xlen(events) == 2
        [ids] = await client.keys("*:chid:*")
        assert await client.hlen(ids) == 2
    await harness.close()
