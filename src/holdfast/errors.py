"""The errors that Holdfast raises; each is a ``HoldfastError``.

::

    from holdfast.errors import ConflictError, UnavailableError
"""

from holdfast.runtime.outcome import ChildTaskError, TaskFailedError, TaskRejectedError
from holdfast.values.errors import (
    AlreadyExistsError,
    BackPressureError,
    CodecError,
    ConfigError,
    ConflictError,
    EngineError,
    HoldfastError,
    IllegalTransitionError,
    InvalidInputError,
    LeaseLostError,
    MissingExtraError,
    NotFoundError,
    NotSupportedError,
    SchemaError,
    SealedError,
    TimedOutError,
    UnavailableError,
    UnknownSchemeError,
    VersionConflictError,
)

__all__ = [
    "AlreadyExistsError",
    "BackPressureError",
    "ChildTaskError",
    "CodecError",
    "ConfigError",
    "ConflictError",
    "EngineError",
    "HoldfastError",
    "IllegalTransitionError",
    "InvalidInputError",
    "LeaseLostError",
    "MissingExtraError",
    "NotFoundError",
    "NotSupportedError",
    "SchemaError",
    "SealedError",
    "TaskFailedError",
    "TaskRejectedError",
    "TimedOutError",
    "UnavailableError",
    "UnknownSchemeError",
    "VersionConflictError",
]
