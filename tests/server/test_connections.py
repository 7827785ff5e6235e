"""Clients that send nothing, or too much, or read nothing keep nobody else out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import State
from holdfast.server.connections import client_network
from holdfast.server.service import Service
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHORT: dict[str, Any] = {"head_seconds": 0.2, "body_seconds": 0.2}
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[State]:
    async with holdfast.open("memory:") as state:
        yield state


@asynccontextmanager
async def _connected(service: Service, count: int = 1) -> AsyncIterator[list[Connection]]:
    found: list[Connection] = []
    try:
        while len(found) < count:
            found += [await asyncio.open_connection("127.0.0.1", service.options.port)]
        yield found
    finally:
        for _, writer in found:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the service closes the connection."""
    found = b""
    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                found += piece
    return found


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"G",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
        b"GET /tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
async def test_a_request_that_is_never_complete_is_closed(memory: State, begin: bytes) -> None:
    async with serving(example_app(), memory, **SHORT) as service, _connected(service) as [one]:
        reader, writer = one
        writer.write(begin)
        assert (await _answer(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_request_that_drips_is_closed(memory: State) -> None:
    async with serving(example_app(), memory, **SHORT) as service, _connected(service) as [one]:
        reader, writer = one
        closed = asyncio.create_task(_answer(reader))
        writer.write(b"GET /health HTTP/1.1\r\n")
        while not closed.done():
            writer.write(b"X-More: y\r\n")
            await asyncio.sleep(0.01)
        # Whoever still sends may see the reset before the answer.
        assert (await closed)[:13] in {b"HTTP/1.1 408 ", b""}


async def test_the_second_request_of_a_connection_has_the_same_deadline(memory: State) -> None:
    async with serving(example_app(), memory, **SHORT) as service, _connected(service) as [one]:
        reader, writer = one
        whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(whole + whole + b"GET /hea")
        closed = asyncio.create_task(_answer(reader))
        while not closed.done():
            writer.write(b"l")
            await asyncio.sleep(0.01)
        assert (await closed).count(b"HTTP/1.1 200 ") == 2


async def test_half_open_connections_keep_nobody_out(memory: State) -> None:
    """They stay open for as long as the test runs, unless they are closed for others."""
    async with (
        serving(example_app(), memory, max_connections=20, head_seconds=3600) as service,
        http_client(base_url=service.url) as http,
        _connected(service, 60) as half_open,
    ):
        for _ in range(3):
            assert (await http.get("/health")).status_code == 200
        async with asyncio.timeout(60):
            while sum(reader.at_eof() or bool(reader.exception()) for reader, _ in half_open) < 40:
                await asyncio.sleep(0.01)


async def test_connections_at_work_are_not_closed_for_others(memory: State) -> None:
    gate = asyncio.Event()
    async with (
        serving(example_app(go=gate), memory, max_connections=2) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "wait go"}]}
        sends = [
            asyncio.create_task(http.post("/message:send", json={"message": message}))
            for _ in range(2)
        ]
        async with asyncio.timeout(60):
            while service._running < 2:
                await asyncio.sleep(0.01)
        async with _connected(service) as [one]:
            assert (await _answer(one[0])).startswith(b"HTTP/1.1 503 ")
        gate.set()
        for send in sends:
            assert (await send).status_code == 200


async def test_one_address_has_its_share_of_connections(memory: State) -> None:
    async with (
        serving(example_app(), memory, max_connections_per_address=3) as service,
        _connected(service, 4) as [*_, last],
    ):
        assert (await _answer(last[0])).startswith(b"HTTP/1.1 503 ")
    assert client_network("::ffff:192.0.2.1") == "192.0.2.1"
    assert client_network("fe80::1%eth0") == "fe80::/64"


async def test_a_client_that_reads_nothing_is_closed(memory: State) -> None:
    async with serving(example_app(), memory, stall_seconds=0.2) as service:
        async with http_client(base_url=service.url, headers=MODERN, timeout=60) as http:
            message = {
                "messageId": "m",
                "role": "ROLE_USER",
                "parts": [{"text": "file 32000000"}],
            }
            made = (await http.post("/message:send", json={"message": message})).json()
            url = made["task"]["artifacts"][0]["parts"][0]["url"]
        path = url.removeprefix(service.url)
        # No more is read than fits into the buffers of the two systems.
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", service.options.port, limit=1024
        )
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async with asyncio.timeout(60):
            while not _of_downloads(service):
                await asyncio.sleep(0.01)
            while _of_downloads(service):
                await asyncio.sleep(0.01)
        assert len(await _answer(reader)) < 32_000_000
        writer.close()


def _of_downloads(service: Service) -> int:
    server = service._server
    return 0 if server is None else len(server.connections)


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "PUT", "POST", "NONSENSE"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_the_body_limit_holds_for_every_method(
    memory: State, method: str, chunked: bool
) -> None:
    async with (
        serving(example_app(), memory, max_request_bytes=10_000) as service,
        _connected(service) as [one],
    ):
        reader, writer = one
        how = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 5000000"
        head = f"{method} /tasks HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\n".encode()
        writer.write(head + how + b"\r\n\r\n")
        for _ in range(20):
            writer.write(b"3e8\r\n" + b"x" * 1000 + b"\r\n" if chunked else b"x" * 1000)
        assert (await _answer(reader)).startswith(b"HTTP/1.1 413 ")


async def test_all_bodies_together_have_a_limit(memory: State) -> None:
    async with serving(example_app(), memory, max_request_bytes=1000, body_seconds=60) as service:
        async with _connected(service, 65) as connections:
            head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
            for _, writer in connections:
                writer.write(head + b"x" * 990)
            answers = [asyncio.create_task(_answer(reader)) for reader, _ in connections]
            done, _ = await asyncio.wait(answers, timeout=60, return_when=asyncio.FIRST_COMPLETED)
            assert {one.result()[:13] for one in done} == {b"HTTP/1.1 503 "}
            for one in answers:
                one.cancel()
            await asyncio.gather(*answers, return_exceptions=True)
        async with http_client(base_url=service.url, timeout=60) as http:
            assert (await http.get("/health")).status_code == 200
