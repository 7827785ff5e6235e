"""No error of redis-py crosses a contract unmapped."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from redis import exceptions as driver

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.errors import DRIVER_ERRORS, NotSentError, rule_of, to_holdfast
from holdfast.values.errors import (
    BackPressureError,
    ConfigError,
    EngineError,
    HoldfastError,
    TimedOutError,
    UnavailableError,
)

ALL = [
    error
    for _, error in inspect.getmembers(driver, inspect.isclass)
    if issubclass(error, Exception) and error.__module__.startswith("redis")
]


def _made(kind: Any) -> Any:
    try:
        return kind("1 127.0.0.1:7000")
    except TypeError:
        return kind.__new__(kind, "said the server")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_of_the_driver_becomes_one_of_ours(kind: Any) -> None:
    assert issubclass(kind, DRIVER_ERRORS), "nobody would catch it"
    for wrote in (True, False):
        assert isinstance(to_holdfast(_made(kind), wrote=wrote), HoldfastError)


@pytest.mark.parametrize(
    "kind", [kind for kind in ALL if kind is not driver.RedisError], ids=lambda kind: kind.__name__
)
def test_every_error_of_the_driver_has_a_rule_of_its_own(kind: Any) -> None:
    assert rule_of(kind) is kind


@pytest.mark.parametrize(
    ("error", "wrote", "expected"),
    [
        (driver.ConnectionError("closed"), True, TimedOutError),
        (driver.ConnectionError("closed"), False, UnavailableError),
        (driver.TimeoutError("late"), True, TimedOutError),
        (TimeoutError("late"), True, TimedOutError),
        (ConnectionResetError("x"), True, TimedOutError),
        (ConnectionRefusedError("x"), True, UnavailableError),
        (NotSentError(driver.ConnectionError("no route")), True, UnavailableError),
        (NotSentError(driver.AuthenticationError("wrong")), True, ConfigError),
        (driver.BusyLoadingError("loading"), True, UnavailableError),
        (driver.ReadOnlyError("replica"), True, UnavailableError),
        (driver.ClusterDownError("down"), True, UnavailableError),
        (driver.OutOfMemoryError("full"), True, BackPressureError),
        (driver.NoPermissionError("no"), True, ConfigError),
        (driver.ResponseError("MISCONF cannot persist"), True, UnavailableError),
        (driver.ResponseError("NOREPLICAS not enough"), True, UnavailableError),
        (driver.ResponseError("WRONGTYPE of a value"), True, EngineError),
    ],
    ids=lambda value: getattr(type(value), "__name__", str(value)),
)
def test_an_error_says_what_the_caller_may_do(
    error: Exception, wrote: bool, expected: type[HoldfastError]
) -> None:
    assert type(to_holdfast(error, wrote=wrote)) is expected


@pytest.mark.asyncio
async def test_no_server_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engines.redis.engine.RETRY_SECONDS", 0.1)
    for url in (
        "redis://127.0.0.1:1",
        "unix:///nowhere/at/all",
        "redis+cluster://127.0.0.1:1,127.0.0.1:2",
    ):
        with pytest.raises(UnavailableError):
            await Redis.open(url)
