"""The driver still has the private parts that the fast connections use."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest
import redis.asyncio.connection as driver
from redis.exceptions import ConnectionError as DriverConnectionError
from redis.exceptions import ResponseError

from holdfast.engines.redis.fast_connection import use_fast_connections
from tests.engines.redis import server
from tests.engines.redis_engine import own_server

pytestmark = pytest.mark.asyncio


def packed(*command: Any) -> bytes:
    whole: Any = command
    found: bytes = hiredis.pack_command(whole)
    return found


async def _connected(pool: driver.ConnectionPool) -> Any:
    fast: Any = use_fast_connections(pool)
    connection = fast.make_connection()
    assert "Fast" in type(connection).__name__
    await connection.connect()
    return connection


async def _works(connection: Any) -> None:
    large = b"x" * 1_000_000
    for value in (b"small", large):
        assert await connection.ask(packed("ECHO", value)) == value
    with pytest.raises(ResponseError, match="unknown command"):
        await connection.ask(packed("NO-SUCH-COMMAND"))
    assert await connection.ask(packed("ECHO", b"after")) == b"after"


async def test_a_fast_connection_asks_over_tcp() -> None:
    connection = await _connected(driver.ConnectionPool.from_url(server().url))
    await _works(connection)
    connection._writer.close()
    with pytest.raises(DriverConnectionError):
        await connection.ask(packed("ECHO", b"x"))
    assert not connection.is_connected


async def test_a_fast_connection_asks_over_a_unix_socket(tmp_path: Any) -> None:
    path = tmp_path / "s"
    with own_server("--unixsocket", str(path)):
        connection = await _connected(driver.ConnectionPool.from_url(f"unix://{path}"))
        await _works(connection)
        await connection.disconnect()


async def test_every_kind_of_connection_of_the_driver_has_a_fast_one() -> None:
    for kind in (driver.Connection, driver.UnixDomainSocketConnection, driver.SSLConnection):
        pool = use_fast_connections(driver.ConnectionPool(connection_class=kind))
        assert issubclass(pool.connection_class, kind)
        assert hasattr(pool.connection_class, "ask")
