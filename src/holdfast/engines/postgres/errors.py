"""Maps driver errors to Holdfast's: by SQLSTATE if the server answered, otherwise by class.

Functions of our migrations raise SQLSTATEs of the class ``HF``, with the facts as JSON in the
detail; everything else is mapped by its class.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from holdfast.spi.checkpoints import forked
from holdfast.values.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    EngineError,
    HoldfastError,
    IllegalTransitionError,
    InvalidInputError,
    LeaseLostError,
    NotFoundError,
    SchemaError,
    TimedOutError,
    UnavailableError,
    VersionConflictError,
)

ENGINE = "postgres"

CONNECTION_LOST = "the connection to the server was lost: try again"
TRY_AGAIN = ("40001", "40P01", "55P03")
"""SQLSTATEs of a rollback because of concurrent transactions: the statement may be sent again."""

READ_ONLY = "25006"
"""The server accepts no writes: it is a standby, or was the primary before a failover."""


def to_holdfast(error: BaseException, *, wrote: bool) -> HoldfastError:
    """Return Holdfast's error for a driver's; ``wrote``: the failed statement may have written.

    >>> to_holdfast(ConnectionRefusedError("no server"), wrote=True)
    UnavailableError('postgres: no server: is the server up? check DATABASE_URL')
    """
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error, wrote=wrote)
    if isinstance(error, (ConnectionRefusedError, FileNotFoundError, PermissionError)):
        return UnavailableError(ENGINE, f"{_text(error)}: is the server up? check DATABASE_URL")
    if isinstance(error, asyncpg.InterfaceError):
        return _from_interface(error)
    if isinstance(error, asyncpg.InternalClientError):
        return _from_client(error, wrote=wrote)
    if isinstance(error, (TimeoutError, OSError)):
        return _lost(error, wrote=wrote)
    return EngineError(ENGINE, f"{type(error).__name__}: {error}")


_BY_STATE: dict[str, Callable[[str], HoldfastError]] = {
    READ_ONLY: lambda text: UnavailableError(
        ENGINE, f"{text}: the server takes no writes, as before a standby is promoted"
    ),
    "28": lambda text: ConfigError(f"{ENGINE}: {text}: check the user, password and database"),
    "3D": lambda text: ConfigError(f"{ENGINE}: {text}: check the user, password and database"),
    "3F": lambda _text: SchemaError(have=0, want=1),
    "40": lambda text: UnavailableError(ENGINE, text),
    "42501": lambda text: ConfigError(
        f"{ENGINE}: {text}: grant the running role what docs/how-to/operate-postgres.md names"
    ),
    "42883": lambda _text: SchemaError(have=0, want=1),
    "42P01": lambda _text: SchemaError(have=0, want=1),
    "53": lambda text: UnavailableError(ENGINE, text),
    "55P03": lambda text: UnavailableError(ENGINE, text),
    "57": lambda text: UnavailableError(ENGINE, text),
    "57014": lambda text: TimedOutError(ENGINE, text),
}
"""Holdfast's error by SQLSTATE, or by its class; any other SQLSTATE is an ``EngineError``."""


def _from_server(error: asyncpg.PostgresError, *, wrote: bool) -> HoldfastError:
    state = str(getattr(error, "sqlstate", None) or "")
    if state.startswith("HF"):
        return _ours(state, error)
    if state.startswith("08"):
        return _lost(error, wrote=wrote)
    text = f"{error} ({state or type(error).__name__})"
    make = _BY_STATE.get(state) or _BY_STATE.get(state[:2])
    return make(text) if make else EngineError(ENGINE, text)


def _from_interface(error: asyncpg.InterfaceError) -> HoldfastError:
    text = str(error)
    if isinstance(error, asyncpg.ClientConfigurationError):
        return ConfigError(f"{ENGINE}: {text}: check DATABASE_URL")
    if "pool is clos" in text:
        return ConfigError(f"{ENGINE}: the pool is closed")
    if "another operation is in progress" in text:
        return ConfigError(f"{ENGINE}: two calls use one connection at the same time")
    # Raised before anything is sent: the connection was closed, or there was none.
    return UnavailableError(ENGINE, CONNECTION_LOST)


def is_read_only(error: BaseException) -> bool:
    """Return whether a statement failed because the server accepts no writes.

    >>> is_read_only(asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT"))
    True
    """
    # Another error of ours blames the caller: a query of a graph that may only read.
    cause = error.__cause__ if isinstance(error, UnavailableError) else error
    return getattr(cause, "sqlstate", None) == READ_ONLY


def nothing_was_sent(error: BaseException) -> bool:
    """Return whether the driver found the connection unusable before it sent the statement.

    A connection that the server ends between two statements is not closed yet, but no longer
    usable.

    >>> nothing_was_sent(asyncpg.InternalClientError("cannot switch to state 12; ..."))
    True
    """
    refused = ("cannot switch to", "not connected")
    return isinstance(error, asyncpg.InternalClientError) and str(error).startswith(refused)


def _from_client(error: asyncpg.InternalClientError, *, wrote: bool) -> HoldfastError:
    """Return an error with Holdfast's own text, as the driver's text is about its protocol."""
    if wrote and not nothing_was_sent(error):
        return TimedOutError(ENGINE, "the response was lost with its connection")
    return UnavailableError(ENGINE, CONNECTION_LOST)


def _lost(error: BaseException, *, wrote: bool) -> HoldfastError:
    if wrote:
        return TimedOutError(ENGINE, f"the response was lost ({_text(error)})")
    return UnavailableError(ENGINE, _text(error))


def _ours(state: str, error: Any) -> HoldfastError:
    facts: dict[str, Any] = json.loads(error.detail or "{}")
    kind, key = str(facts.get("kind", "row")), str(facts.get("key", ""))
    text = str(error.message if hasattr(error, "message") else error)
    match state:
        case "HF001":
            return ConflictError(kind, key, text)
        case "HF002":
            return NotFoundError(kind, key)
        case "HF003":
            return VersionConflictError(
                kind, key, expected=facts["expected"], actual=facts["actual"]
            )
        case "HF004":
            return IllegalTransitionError(
                kind, key, from_state=facts["from_state"], to_state=facts["to_state"]
            )
        case "HF005":
            return LeaseLostError(kind, key)
        case "HF006":
            return InvalidInputError(str(facts["field"]), text)
        case "HF007":
            return AlreadyExistsError(kind, key)
        case "HF008":
            return forked(key, str(facts["expected"]), str(facts["newest"]))
    return EngineError(ENGINE, f"{text} ({state})")


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__


@contextmanager
def connecting() -> Iterator[None]:
    """Like ``mapped``, for the first use of a URL, which the driver may fail to parse."""
    try:
        with mapped(wrote=False):
            yield
    except ValueError:
        # Without the driver's text: it may quote a part of the password.
        raise ConfigError(
            f"{ENGINE}: the URL cannot be read: write "
            "postgresql://user:password@host:port/database, with special characters of the "
            "password percent-encoded, and check DATABASE_URL"
        ) from None


@contextmanager
def mapped(*, wrote: bool) -> Iterator[None]:
    """Raise Holdfast's error in place of a driver's."""
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise to_holdfast(error, wrote=wrote) from error
    except (TimeoutError, OSError) as error:
        raise to_holdfast(error, wrote=wrote) from error
