"""Our errors as A2A's: what a client may know, and nothing of what is inside.

The SDK looks an error up by its exact type, and shows the text of whatever it does not know to the
client; so all of them are turned into its own types here, and only texts that are about the
client's own input pass.
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
"""When to try again, where the error does not say."""


class NotAllowedError(Exception):
    """The caller's API key does not have the scope for this; nothing was done.

    >>> str(NotAllowedError("this key only reads"))
    'this key only reads'
    """


@dataclass(frozen=True, slots=True)
class Hint:
    """What HTTP can say of an error that A2A has no word for.

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
"""What a body in JSON calls the status of a hint."""

MESSAGE_ID = "message-id:"
"""How a submit key begins that is the id of a message."""


def to_a2a(error: Exception) -> tuple[A2AError, Hint | None]:
    """The error that a client gets, and what HTTP says of it.

    >>> to_a2a(NotFoundError("task", "t1"))[0].message
    'Task not found'
    """
    if isinstance(error, A2AError):
        return error, None
    if isinstance(error, NotFoundError):
        # The same for what is not there and for what is not yours, to the letter.
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
        told = InternalError(message=str(error), data=data)
        return told, Hint(429, {"Retry-After": f"{math.ceil(wait)}"})
    if isinstance(error, (BackPressureError, UnavailableError, TimedOutError)):
        wait = getattr(error, "retry_after_seconds", RETRY_SECONDS)
        _log.warning("a request could not be served for now: %s", error)
        data = {"retryAfterSeconds": wait}
        told = InternalError(message="not available for now: try again", data=data)
        return told, Hint(503, {"Retry-After": f"{math.ceil(wait)}"})
    return InternalError(data={"incident": log_incident(error)}), Hint(500)


def log_incident(error: Exception) -> str:
    """Log an error that nobody expected. Returns the id that the log and the client get."""
    incident = new_ref()[:10]
    _log.error("incident %s: a request failed", incident, exc_info=error)
    return incident


def _named(error: ConflictError) -> str:
    """As the client knows it."""
    if error.kind != "submit_key":
        return error.kind
    return "messageId" if error.key.startswith(MESSAGE_ID) else "Idempotency-Key"
