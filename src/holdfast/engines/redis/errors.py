"""Converts errors of redis-py to Holdfast's, by what is known about the failed command.

A command that was never sent, or that the server refused before it ran, wrote nothing:
``UnavailableError``. One that was sent and got no reply may have written: ``TimedOutError``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from redis import exceptions as driver

from holdfast.values.errors import (
    BackPressureError,
    ConfigError,
    EngineError,
    HoldfastError,
    NotSupportedError,
    TimedOutError,
    UnavailableError,
)

ENGINE = "redis"

DRIVER_ERRORS = (
    driver.RedisError,
    driver.RedisClusterException,
    driver.ChildDeadlockedError,
    driver.IncorrectPolicyType,
    OSError,
    TimeoutError,
)
"""All errors that redis-py raises: its base classes, and the errors of a socket."""

Maker: TypeAlias = Callable[[str], HoldfastError]

REFUSED_FOR_NOW = (
    driver.BusyLoadingError,
    driver.ReadOnlyError,
    driver.ClusterDownError,
    driver.MasterDownError,
    driver.TryAgainError,
    driver.AskError,
    driver.MovedError,
    driver.SlotNotCoveredError,
    driver.MaxConnectionsError,
)
"""The server refused the command before it ran, so that any command may be sent again."""


def _credentials(text: str) -> HoldfastError:
    return ConfigError(f"{ENGINE}: {text}: check the user, the password and what the user may do")


def _unavailable(text: str) -> HoldfastError:
    return UnavailableError(ENGINE, text)


def _failed(text: str) -> HoldfastError:
    return EngineError(ENGINE, text)


def _full(text: str) -> HoldfastError:
    return BackPressureError(
        retry_after_seconds=1.0,
        message=f"{ENGINE}: {text}: the server is at maxmemory; raise it, or let data expire",
    )


def _cluster(text: str) -> HoldfastError:
    # The driver has one class for nodes that do not answer and for a server that is no node.
    if "not enabled" in text:
        return ConfigError(f"{ENGINE}: {text}: open it with redis:// instead of redis+cluster://")
    return UnavailableError(ENGINE, text)


_BY_CLASS: dict[type[BaseException], Maker | None] = {
    driver.AuthenticationError: _credentials,
    driver.AuthenticationWrongNumberOfArgsError: _credentials,
    driver.AuthorizationError: _credentials,
    driver.ExternalAuthProviderError: _credentials,
    driver.NoPermissionError: _credentials,
    **dict.fromkeys(REFUSED_FOR_NOW, _unavailable),
    driver.ClusterError: _unavailable,
    driver.OutOfMemoryError: _full,
    driver.ConnectionError: None,
    driver.TimeoutError: None,
    driver.InvalidResponse: None,
    driver.ResponseError: _failed,
    driver.NoScriptError: _unavailable,
    driver.ExecAbortError: _failed,
    driver.ModuleError: lambda text: NotSupportedError(ENGINE, "a module", why=text),
    driver.NoSuchFieldsetError: _failed,
    driver.DataError: _failed,
    driver.PubSubError: _failed,
    driver.WatchError: _failed,
    driver.LockError: _failed,
    driver.LockNotOwnedError: _failed,
    driver.ClusterCrossSlotError: _failed,
    driver.CrossSlotTransactionError: _failed,
    driver.InvalidPipelineStack: _failed,
    driver.IncorrectPolicyType: _failed,
    driver.ChildDeadlockedError: _failed,
    driver.RedisClusterException: _cluster,
    ConnectionRefusedError: _unavailable,
    FileNotFoundError: _unavailable,
    PermissionError: _unavailable,
    TimeoutError: None,
    OSError: None,
}
"""Holdfast's error for each driver error.

``None``: it depends on whether the command may have written.
"""

_BY_PREFIX: dict[str, Maker] = {
    "MISCONF": _unavailable,
    "NOREPLICAS": _unavailable,
    "BUSY": _unavailable,
    "NOAUTH": _credentials,
    "NOTBUSY": _unavailable,
}
"""Error replies that the driver has no class for, by their first word."""


_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""The text of the TLS library for a certificate that no known authority has signed."""


class NotSentError(OSError):
    """There was no connection. Nothing was sent, so a retry is safe."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(_text(cause))
        self.cause = cause


class ClosedError(Exception):
    """The engine was closed."""


def rule_of(kind: type[BaseException]) -> type[BaseException] | None:
    """Return the class by which an error is mapped: its own, or the nearest base class.

    >>> rule_of(driver.MovedError).__name__
    'MovedError'
    """
    return next((known for known in kind.__mro__ if known in _BY_CLASS), None)


def to_holdfast(error: BaseException, *, wrote: bool) -> HoldfastError:
    """Return Holdfast's error for a driver's. ``wrote``: the failed command may have written.

    >>> to_holdfast(ConnectionRefusedError("no server"), wrote=True)
    UnavailableError('redis: no server')
    """
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, ClosedError):
        return ConfigError(f"{ENGINE}: the engine is closed: open it again")
    if isinstance(error, NotSentError):
        cause = to_holdfast(error.cause, wrote=False)
        return UnavailableError(ENGINE, _text(error)) if type(cause) is EngineError else cause
    text = _text(error)
    if _UNTRUSTED in text and not isinstance(error, driver.ResponseError):
        return ConfigError(f"{ENGINE}: {text}: name the authority with ?ssl_ca_certs=file.pem")
    make = _BY_PREFIX.get(text.partition(" ")[0])
    if make is not None and isinstance(error, driver.ResponseError):
        return make(text)
    rule = rule_of(type(error))
    if rule is None:
        return EngineError(ENGINE, f"{type(error).__name__}: {text}")
    make = _BY_CLASS[rule]
    if make is not None:
        return make(text)
    if wrote:
        return TimedOutError(ENGINE, f"the response was lost ({text})")
    return UnavailableError(ENGINE, text)


def may_retry(error: BaseException, *, safe: bool) -> bool:
    """Return whether the command may be sent again: it had no effect, or it is idempotent.

    >>> may_retry(driver.BusyLoadingError("loading"), safe=False)
    True
    """
    if isinstance(error, NotSentError):
        return isinstance(to_holdfast(error, wrote=False), UnavailableError)
    if isinstance(error, REFUSED_FOR_NOW) or type(error) is driver.ClusterError:
        return True
    if isinstance(error, (TimeoutError, driver.TimeoutError)):
        # The caller has already waited for the full timeout.
        return False
    lost = isinstance(error, (driver.ConnectionError, driver.InvalidResponse, OSError))
    return safe and lost and isinstance(to_holdfast(error, wrote=False), UnavailableError)


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
