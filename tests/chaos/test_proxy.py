"""The proxy does to connections what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from holdfast.chaos.proxy import Proxy

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(60)]


class Echo:
    """A server that says back what it is told, and remembers it."""

    def __init__(self) -> None:
        self.heard = b""
        self.heard_more = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(100):
                self.heard += data
                self.heard_more.set()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def echo() -> AsyncIterator[tuple[Echo, Proxy]]:
    one = Echo()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Proxy("127.0.0.1", port).listening() as proxy:
        yield one, proxy
    server.close()


@asynccontextmanager
async def _asked(
    proxy: Proxy, text: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection over which something was said, and said back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        writer.write(text)
        assert await reader.readexactly(len(text)) == text
        yield reader, writer
    finally:
        writer.close()


async def test_a_cut_connection_is_reset_and_a_new_one_works(echo: tuple[Echo, Proxy]) -> None:
    _, proxy = echo
    async with _asked(proxy, b"one") as (reader, _):
        await proxy.cut()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
    assert proxy.resets == 1
    async with _asked(proxy, b"two"):
        pass


async def test_a_silent_connection_passes_nothing_and_is_reset_at_the_end(
    echo: tuple[Echo, Proxy],
) -> None:
    server, proxy = echo
    async with _asked(proxy, b"one") as (reader, writer):
        silence = asyncio.create_task(proxy.silence(for_seconds=0.2))
        await asyncio.sleep(0)
        writer.write(b"lost")
        async with _asked(proxy, b"two"):
            await silence
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
    assert server.heard == b"onetwo"


async def test_a_deaf_connection_passes_requests_and_loses_answers(
    echo: tuple[Echo, Proxy],
) -> None:
    server, proxy = echo
    async with _asked(proxy, b"one") as (reader, writer):
        server.heard_more.clear()
        deafness = asyncio.create_task(proxy.deafen(for_seconds=0.2))
        await asyncio.sleep(0)
        writer.write(b"two")
        await server.heard_more.wait()
        assert server.heard == b"onetwo"
        await deafness
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)


async def test_what_is_delayed_arrives_also_after_the_client_has_gone(
    echo: tuple[Echo, Proxy],
) -> None:
    server, proxy = echo
    async with _asked(proxy, b"one") as (_, writer):
        server.heard_more.clear()
        delay = asyncio.create_task(proxy.delay(0.1, for_seconds=0.2))
        await asyncio.sleep(0)
        writer.write(b"two")
        await writer.drain()
    await server.heard_more.wait()
    assert server.heard == b"onetwo"
    await delay


async def test_a_server_that_is_gone_is_an_error_through_the_proxy_too() -> None:
    async with Proxy("127.0.0.1", 1).listening() as proxy, _asked(proxy) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
