"""Decides which failed statements are sent again, and how often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import stamina

from holdfast.engines.postgres.errors import READ_ONLY, TRY_AGAIN, nothing_was_sent, to_holdfast
from holdfast.values.errors import HoldfastError, UnavailableError

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TimeoutError,
    OSError,
)
_LOGGER = "holdfast.postgres"


class NotConnectedError(OSError):
    """No connection was available; nothing was sent."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


def cause_of(error: BaseException) -> BaseException:
    """Return the driver's error that caused this error."""
    if not isinstance(error, NotConnectedError):
        return error
    known = isinstance(error.cause, (asyncpg.PostgresError, asyncpg.InterfaceError, HoldfastError))
    return error.cause if known else ConnectionRefusedError(str(error))


def may_retry(error: BaseException, *, safe: bool) -> bool:
    """Return whether a statement may be sent again; ``safe`` marks it as idempotent."""
    if isinstance(error, NotConnectedError):
        # Wrong password, unknown database, closed pool, an embedded server that does not start:
        # the next try would fail in the same way.
        state = str(getattr(error.cause, "sqlstate", None) or "")
        hopeless = isinstance(error.cause, (asyncpg.InterfaceError, HoldfastError))
        return state[:2] not in {"28", "3D"} and not hopeless
    state = str(getattr(error, "sqlstate", None) or "")
    if state in TRY_AGAIN or state in {"57P01", "57P02", "57P03", "53300", READ_ONLY}:
        return True
    if nothing_was_sent(error):
        return True
    return safe and (
        state[:2] == "08"
        or isinstance(error, (OSError, asyncpg.InternalClientError))
        or (isinstance(error, asyncpg.InterfaceError) and "closed" in str(error))
    )


async def retried(
    call: Callable[[], Awaitable[Sequence[Any]]], error: BaseException, *, safe: bool
) -> Sequence[Any]:
    """Retry a failed call for a while if it may be retried; else raise Holdfast's error."""
    if not may_retry(error, safe=safe):
        raise to_holdfast(cause_of(error), wrote=not safe) from error
    try:
        async for attempt in stamina.retry_context(
            on=lambda failed: may_retry(failed, safe=safe),
            attempts=10,
            timeout=15,
            wait_initial=0.02,
            wait_max=1.0,
        ).with_name(_LOGGER, (), {}):
            with attempt:
                return await call()
    except DRIVER_ERRORS as failed:
        raise to_holdfast(cause_of(failed), wrote=not safe) from failed
    raise UnavailableError("postgres", "no answer")
