"""No driver's error crosses a contract unmapped."""

from __future__ import annotations

import inspect
from typing import Any

import asyncpg
import pytest

from holdfast.engines.postgres.admin import PostgresAdmin
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.errors import to_holdfast
from holdfast.values.errors import (
    ConfigError,
    EngineError,
    HoldfastError,
    SchemaError,
    TimedOutError,
    UnavailableError,
)
from tests.engines.postgres_database import empty_database

DRIVER_ERRORS = [
    error
    for _, error in inspect.getmembers(asyncpg.exceptions, inspect.isclass)
    if issubclass(error, Exception) and error.__module__.startswith("asyncpg")
]


def _made(kind: Any) -> Any:
    try:
        return kind("said the server")
    except TypeError:
        return kind.__new__(kind, "said the server")


@pytest.mark.parametrize("kind", DRIVER_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_driver_becomes_one_of_ours(kind: Any) -> None:
    for wrote in (True, False):
        assert isinstance(to_holdfast(_made(kind), wrote=wrote), HoldfastError)


@pytest.mark.parametrize(
    ("error", "wrote", "expected"),
    [
        (asyncpg.SerializationError("x"), True, UnavailableError),
        (asyncpg.DeadlockDetectedError("x"), True, UnavailableError),
        (asyncpg.ConnectionDoesNotExistError("x"), True, TimedOutError),
        (asyncpg.ConnectionDoesNotExistError("x"), False, UnavailableError),
        (asyncpg.TooManyConnectionsError("x"), True, UnavailableError),
        (asyncpg.AdminShutdownError("x"), True, UnavailableError),
        (asyncpg.CannotConnectNowError("x"), True, UnavailableError),
        (asyncpg.QueryCanceledError("x"), True, TimedOutError),
        (asyncpg.InvalidPasswordError("x"), True, ConfigError),
        (asyncpg.InvalidCatalogNameError("x"), True, ConfigError),
        (asyncpg.UndefinedTableError("x"), True, SchemaError),
        (asyncpg.InsufficientPrivilegeError("x"), True, ConfigError),
        (asyncpg.DiskFullError("x"), True, UnavailableError),
        (asyncpg.DataError("x"), True, EngineError),
        (TimeoutError("x"), True, TimedOutError),
        (ConnectionResetError("x"), True, TimedOutError),
        (ConnectionResetError("x"), False, UnavailableError),
        (ConnectionRefusedError("x"), True, UnavailableError),
    ],
    ids=lambda value: getattr(type(value), "__name__", str(value)),
)
def test_an_error_says_what_the_caller_may_do(
    error: Exception, wrote: bool, expected: type[HoldfastError]
) -> None:
    assert type(to_holdfast(error, wrote=wrote)) is expected


@pytest.mark.asyncio
async def test_no_server_is_unavailable_and_a_wrong_password_is_configuration() -> None:
    with pytest.raises(UnavailableError, match=r"is the server up\? check DATABASE_URL"):
        await Postgres.open("postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "url",
    ["postgresql://a:b@localhost:se-cret/db", "postgresql://[::1/x", "postgresql://a:se/cret@h"],
)
async def test_a_url_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    for opening in (Postgres.open, PostgresAdmin.open):
        with pytest.raises(ConfigError, match="check DATABASE_URL") as caught:
            await opening(url)
        assert "cret" not in str(caught.value)
        assert caught.value.__cause__ is None


DRIVER_WORDS = [
    asyncpg.InternalClientError('cannot switch to state 12; protocol is in the "failed" state'),
    asyncpg.InternalClientError("cannot switch to state 12; another operation (3) is in progress"),
    asyncpg.InternalClientError("got result for unknown protocol state 3"),
    asyncpg.InterfaceError("cannot perform operation: another operation is in progress"),
    asyncpg.InterfaceError(
        "cannot call Connection.fetch(): connection has been released back to the pool"
    ),
]


@pytest.mark.parametrize("error", DRIVER_WORDS, ids=str)
def test_the_drivers_words_about_its_protocol_do_not_reach_users(error: Exception) -> None:
    for wrote in (True, False):
        said = str(to_holdfast(error, wrote=wrote))
        assert not {"state", "protocol", "operation", "Connection.fetch"} & set(said.split())
        assert "cannot switch" not in said


FATAL = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"


@pytest.mark.asyncio
@pytest.mark.parametrize("safe", [True, False])
async def test_a_connection_that_the_server_gave_up_between_two_calls_is_replaced(
    safe: bool,
) -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        try:
            await engine.ping()
            [held] = engine._at_hand
            # What a server says when it is shut down; that it has closed is not known yet.
            held._con._protocol.data_received(b"E" + (len(FATAL) + 4).to_bytes(4, "big") + FATAL)
            assert not held.is_closed()
            assert [tuple(row) for row in await engine.fetch_across("SELECT 42", safe=safe)] == [
                (42,)
            ]
            # The broken one is not given to the next caller.
            assert [tuple(row) for row in await engine.fetch_across("SELECT 43", safe=safe)] == [
                (43,)
            ]
        finally:
            await engine.aclose()
