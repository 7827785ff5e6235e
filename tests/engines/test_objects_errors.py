"""No driver's error crosses a contract unmapped, and no error shows a secret."""

from __future__ import annotations

import inspect
import socket
from typing import Any

import pytest
from obstore import exceptions

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.errors import BY_CLASS, to_holdfast
from holdfast.values.errors import (
    ConfigError,
    ConflictError,
    EngineError,
    HoldfastError,
    NotFoundError,
    NotSupportedError,
    TimedOutError,
    UnavailableError,
)
from tests.engines.seaweedfs_server import s3_server

DRIVER_ERRORS = [
    error
    for _, error in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(error, Exception)
]


def test_the_driver_has_errors_to_walk() -> None:
    assert len(DRIVER_ERRORS) >= 10


@pytest.mark.parametrize("kind", DRIVER_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_driver_has_a_row_of_its_own(kind: Any) -> None:
    assert kind in BY_CLASS
    for wrote in (True, False):
        assert isinstance(to_holdfast(kind("said the server"), wrote=wrote), HoldfastError)


CONNECT = "error sending request\n\nDebug source:\n HttpError {\n kind: Connect,"
TIMEOUT = "error sending request\n\nDebug source:\n HttpError {\n kind: Timeout,"


@pytest.mark.parametrize(
    ("error", "wrote", "expected"),
    [
        (exceptions.GenericError(CONNECT), True, UnavailableError),
        (exceptions.GenericError(TIMEOUT), True, TimedOutError),
        (exceptions.GenericError(TIMEOUT), False, UnavailableError),
        (exceptions.GenericError("status code: 503 Slow Down"), True, UnavailableError),
        (exceptions.GenericError("status code: 500 Internal"), True, TimedOutError),
        (exceptions.GenericError("status code: 400 Bad Request"), True, EngineError),
        (exceptions.GenericError("No space left (os error 28)"), True, UnavailableError),
        (
            exceptions.GenericError("x\n\nDebug source:\n UnableToRenameFile"),
            True,
            UnavailableError,
        ),
        (exceptions.PermissionDeniedError("x"), True, ConfigError),
        (exceptions.UnauthenticatedError("x"), True, ConfigError),
        (exceptions.UnknownConfigurationKeyError("x"), True, ConfigError),
        (exceptions.AlreadyExistsError("x"), True, ConflictError),
        (exceptions.NotSupportedError("x"), True, NotSupportedError),
        (exceptions.BaseError("x"), True, EngineError),
        (FileNotFoundError("x"), False, NotFoundError),
        (FileNotFoundError("<Code>NoSuchBucket</Code>"), False, ConfigError),
        (PermissionError("x"), True, ConfigError),
        (ConnectionResetError("x"), True, TimedOutError),
        (ConnectionResetError("x"), False, UnavailableError),
    ],
    ids=lambda value: getattr(type(value), "__name__", str(value)),
)
def test_an_error_says_what_the_caller_may_do(
    error: Exception, wrote: bool, expected: type[HoldfastError]
) -> None:
    assert type(to_holdfast(error, wrote=wrote)) is expected


def test_an_error_has_neither_the_debug_dump_nor_what_a_signed_url_carries() -> None:
    said = "Error performing PUT https://h/b/x?sig=s3cret&se=1: no\n\nDebug source:\n{ token: t0 }"
    shown = str(to_holdfast(exceptions.GenericError(said), wrote=True))
    assert "s3cret" not in shown
    assert "t0" not in shown
    assert "https://h/b/x" in shown


@pytest.mark.asyncio
async def test_no_server_is_unavailable() -> None:
    with pytest.raises(UnavailableError):
        await Objects.open(
            "s3://bucket?endpoint=http://127.0.0.1:1&allow_http=1&access_key_id=a"
            "&secret_access_key=b",
            retry_seconds=0.2,
        )


@pytest.mark.asyncio
async def test_a_server_that_says_nothing_is_an_error_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(EngineError) as caught:
            await Objects.open(
                f"s3://bucket?endpoint=http://127.0.0.1:{silent.getsockname()[1]}"
                "&allow_http=1&access_key_id=a&secret_access_key=b",
                timeout_seconds=0.2,
                retry_seconds=0.2,
            )
    assert isinstance(caught.value, (TimedOutError, UnavailableError))


@pytest.mark.asyncio
async def test_a_wrong_key_or_secret_is_configuration_and_the_error_does_not_tell_it() -> None:
    good = s3_server().url("holdfast-errors/x")
    for wrong in (
        good.replace("secret_access_key=", "secret_access_key=not-"),
        good.replace("&access_key_id=", "&access_key_id=not-"),
    ):
        with pytest.raises(ConfigError) as caught:
            await Objects.open(wrong)
        assert "only-on-loopback" not in str(caught.value)
        assert "credentials" in str(caught.value)


@pytest.mark.asyncio
async def test_a_parameter_that_the_driver_does_not_know_is_configuration() -> None:
    with pytest.raises(ConfigError, match="bogus"):
        await Objects.open("s3://bucket?bogus=1")
