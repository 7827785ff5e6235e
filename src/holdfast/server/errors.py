"""Converts Holdfast's errors to A2A errors without internal details.

The SDK looks an error up by its exact type, and sends the text of an unknown one to the client. So
all errors are converted to the SDK's types here, and a text is passed on only if it is about the
client's own input.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field

from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from holdfast.server.limits import TooManyRequestsError
from holdfast.values.errors import (
    BackPressureError,
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    NotSupportedError,
    TimedOutError,
    UnavailableError,
)
from holdfast.values.ids import new_ref

_log = logging.getLogger("holdfast.server")
RETRY_SECONDS = 1.0
"""Default of the ``Retry-After`` header, if the error has no value."""


class NotAllowedError(Exception):
    """Raised if the caller's API key does not have the scope for a method; nothing was done.

    >>> str(NotAllowedError("this key only reads"))
    'this key only reads'
    """


@dataclass(frozen=True, slots=True)
class Hint:
    """HTTP status and headers of an error that A2A has no code for.

    >>> Hint(409).headers
    {}
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)


WORDS = {
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ALREADY_EXISTS",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
"""The status name in a JSON error body, by HTTP status of a hint."""

MESSAGE_ID = "message-id:"
"""Prefix of a submit key that is made of a message id."""


def to_a2a(error: Exception) -> tuple[A2AError, Hint | None]:
    """Return the A2A error for a client, and a hint for its HTTP response.

    >>> to_a2a(NotFoundError("task", "t1"))[0].message
    'Task not found'
    """
    if isinstance(error, A2AError):
        return error, None
    if isinstance(error, NotFoundError):
        # Exactly the same for a missing task and for another owner's task, so that a client
        # cannot find out which tasks exist.
        return TaskNotFoundError(), None
    if isinstance(error, InvalidInputError):
        return InvalidParamsError(message=str(error)), None
    if isinstance(error, IllegalTransitionError):
        text = f"the task is {error.from_state} and cannot become {error.to_state}"
        return UnsupportedOperationError(message=text), None
    if isinstance(error, ConflictError):
        text = f"this {_named(error)} was sent before with another content: use another"
        return InvalidParamsError(message=text, data={"conflict": error.kind}), Hint(409)
    if isinstance(error, NotSupportedError):
        return UnsupportedOperationError(), None
    if isinstance(error, NotAllowedError):
        return UnsupportedOperationError(message=str(error)), Hint(403)
    if isinstance(error, TooManyRequestsError):
        wait = error.retry_after_seconds
        data = {"retryAfterSeconds": wait}
        answer = InternalError(message=str(error), data=data)
        return answer, Hint(429, {"Retry-After": f"{math.ceil(wait)}"})
    if isinstance(error, (BackPressureError, UnavailableError, TimedOutError)):
        wait = getattr(error, "retry_after_seconds", RETRY_SECONDS)
        _log.warning("a request could not be served for now: %s", error)
        data = {"retryAfterSeconds": wait}
        answer = InternalError(message="not available for now: try again", data=data)
        return answer, Hint(503, {"Retry-After": f"{math.ceil(wait)}"})
    return InternalError(data={"incident": log_incident(error)}), Hint(500)


def log_incident(error: Exception) -> str:
    """Log an unexpected error. Returns the incident id that the log and the client get."""
    incident = new_ref()[:10]
    _log.error("incident %s: a request failed", incident, exc_info=error)
    return incident


def _named(error: ConflictError) -> str:
    """Return the name by which the client knows what conflicts."""
    if error.kind != "submit_key":
        return error.kind
    return "messageId" if error.key.startswith(MESSAGE_ID) else "Idempotency-Key"
