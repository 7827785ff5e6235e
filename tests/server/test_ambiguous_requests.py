"""A request that a proxy may end elsewhere than the service does is refused, and disconnected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

import holdfast
from holdfast.server.service import Service
from tests.server.running import example_app, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
NEXT = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"\r\n\r\n0\r\n\r\n" + NEXT
AMBIGUOUS = {
    "both lengths": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    "both lengths, the other way": b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    "both lengths, in odd letters": b"cOnTeNt-LeNgTh: 5\r\nTRANSFER-ENCODING: chunked",
    "the same length twice": b"Content-Length: 5\r\nContent-Length: 5",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6",
    "a list of lengths": b"Content-Length: 5, 5",
    "a folded header": b"X-One: a\r\n b\r\nContent-Length: 5",
    "a folded length": b"Content-Length:\r\n 5",
    "a folded encoding": b"Transfer-Encoding:\r\n\tchunked",
    "a space before the colon": b"Content-Length : 5",
    "a signed length": b"Content-Length: +5",
    "a length of 5,000 digits": b"Content-Length: " + b"5" * 5_000,
    "an unknown encoding": b"Transfer-Encoding: xchunked",
    "two encodings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
}


@pytest_asyncio.fixture
async def service() -> AsyncIterator[Service]:
    async with holdfast.open("memory:") as state, serving(example_app(), state) as running:
        yield running


async def _answers(service: Service, sent: bytes) -> bytes:
    """All that comes until the service closes the connection; the client never does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.options.port)
    found = b""
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            with suppress(ConnectionError):
                while piece := await reader.read(65_536):
                    found += piece
    finally:
        writer.close()
    return found


@pytest.mark.parametrize("what", AMBIGUOUS)
async def test_a_request_whose_end_is_ambiguous_is_refused_and_nothing_after_it_is_read(
    service: Service, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    head = b"POST /tasks HTTP/1.1\r\nHost: localhost\r\n" + AMBIGUOUS[what]
    found = await _answers(service, head + BODY)
    assert found.startswith(b"HTTP/1.1 400 "), found
    assert found.count(b"HTTP/1.1 ") == 1, found
    assert b"connection: close" in found
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]


async def test_the_second_request_of_a_connection_is_checked_as_the_first(service: Service) -> None:
    head = b"POST /tasks HTTP/1.1\r\nHost: localhost\r\n" + AMBIGUOUS["both lengths"]
    found = await _answers(service, NEXT + head + BODY)
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.count(b"HTTP/1.1 400 ") == 1
    assert found.count(b"HTTP/1.1 ") == 2


async def test_http_1_0_has_no_transfer_encoding(service: Service) -> None:
    head = b"POST /tasks HTTP/1.0\r\nTransfer-Encoding: chunked"
    assert (await _answers(service, head + BODY)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_that_comes_letter_by_letter_is_checked(service: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.options.port)
    head = b"POST /tasks HTTP/1.1\r\nHost: localhost\r\n" + AMBIGUOUS["both lengths"] + b"\r\n\r\n"
    try:
        for letter in head:
            writer.write(bytes([letter]))
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
    finally:
        writer.close()
