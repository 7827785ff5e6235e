"""The errors that Holdfast raises, grouped by what the caller should do.

::

    HoldfastError
    ├── NotFoundError (LookupError)            it is not there, or not yours
    ├── ConflictError                          another or an earlier write was stored first
    │   ├── AlreadyExistsError
    │   ├── VersionConflictError
    │   ├── IllegalTransitionError
    │   └── LeaseLostError
    ├── InvalidInputError (ValueError)         change the named field
    ├── NotSupportedError                      choose another engine, or configure this one
    ├── CodecError                             stored bytes cannot be read
    ├── SealedError                            a sealed value cannot be opened with these keys
    ├── ConfigError                            change the configuration
    │   ├── UnknownSchemeError
    │   ├── MissingExtraError (ImportError)
    │   └── SchemaError
    ├── BackPressureError                      wait, then try again
    └── EngineError                            the server behind the contract
        ├── UnavailableError (ConnectionError) nothing was written: try again
        └── TimedOutError (TimeoutError)       outcome unknown: try again only with the same id

Every error is picklable and has its details as attributes. Callers never get the exception of a
database driver: each engine converts its driver's errors to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class HoldfastError(Exception):
    """The base class: ``except HoldfastError`` catches every error that Holdfast raises.

    >>> issubclass(NotFoundError, HoldfastError)
    True
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.args, self.__dict__.copy()))


def _restore(cls: type[HoldfastError], args: tuple[Any, ...], facts: dict[str, Any]) -> Any:
    # Exception.__reduce__ would call cls(*args), and the constructors here take facts instead.
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class NotFoundError(HoldfastError, LookupError):
    """The thing named by ``kind`` and ``key`` does not exist, has expired, or is another owner's.

    >>> NotFoundError("blob", "b_1").kind
    'blob'
    """

    def __init__(self, kind: str, key: str, message: str = "") -> None:
        self.kind = kind
        self.key = key
        super().__init__(
            message or f"{kind} {key!r} was not found: it does not exist or has expired"
        )


class ConflictError(HoldfastError):
    """What is stored under ``kind`` and ``key`` contradicts this write; nothing was written.

    >>> ConflictError("message", "m1", "the same id with another body").key
    'm1'
    """

    def __init__(self, kind: str, key: str, message: str = "") -> None:
        self.kind = kind
        self.key = key
        super().__init__(message or f"{kind} {key!r} conflicts with what is stored")


class AlreadyExistsError(ConflictError):
    """The id of an ``add`` is taken; use the store's ``upsert`` to overwrite.

    >>> AlreadyExistsError("document", "d1").kind
    'document'
    """

    def __init__(self, kind: str, key: str, message: str = "") -> None:
        super().__init__(
            kind, key, message or f"{kind} {key!r} already exists: use another id, or upsert"
        )


class VersionConflictError(ConflictError):
    """The stored version is not the expected one: read again, then write.

    >>> VersionConflictError("state", "s1", expected=3, actual=4).actual
    4
    """

    def __init__(self, kind: str, key: str, *, expected: int, actual: int) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(
            kind,
            key,
            f"{kind} {key!r} is at version {actual}, not {expected}: read it again and retry",
        )


class IllegalTransitionError(ConflictError):
    """The change from ``from_state`` to ``to_state`` is not allowed.

    >>> IllegalTransitionError("task", "t1", from_state="completed", to_state="working").to_state
    'working'
    """

    def __init__(
        self, kind: str, key: str, *, from_state: str, to_state: str, message: str = ""
    ) -> None:
        self.from_state = from_state
        self.to_state = to_state
        super().__init__(
            kind,
            key,
            message or f"{kind} {key!r} cannot go from {str(from_state)!r} to {str(to_state)!r}",
        )


class LeaseLostError(ConflictError):
    """Another worker has the task now, or it was stopped: stop working on it, write nothing more.

    >>> LeaseLostError("task", "t1").kind
    'task'
    """

    def __init__(self, kind: str, key: str, message: str = "") -> None:
        super().__init__(
            kind,
            key,
            message or f"the lease on {kind} {key!r} is lost: stop this attempt, it was taken over",
        )


class InvalidInputError(HoldfastError, ValueError):
    """The input named by ``field`` cannot be stored as it is; nothing was written.

    >>> InvalidInputError("limit", "must be 0 or more, not -1").field
    'limit'
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        super().__init__(f"{field}: {problem}")


class NotSupportedError(HoldfastError):
    """``engine`` does not support ``capability``; ``why`` names what to use or configure instead.

    >>> NotSupportedError("redis", "graph", why="open a postgresql:// URL").engine
    'redis'
    """

    def __init__(self, engine: str, capability: str, *, why: str) -> None:
        self.engine = engine
        self.capability = capability
        self.why = why
        super().__init__(f"the {engine} engine does not support {capability}: {why}")


class CodecError(HoldfastError):
    """Stored bytes cannot be read: damaged, or written by a newer version of Holdfast.

    >>> str(CodecError("not JSON"))
    'not JSON'
    """


class SealedError(HoldfastError):
    """An encrypted value cannot be decrypted: its key is missing or destroyed, or it was changed.

    >>> str(SealedError("the data key 7 was destroyed"))
    'the data key 7 was destroyed'
    """


class ConfigError(HoldfastError):
    """The configuration is invalid: correct it before opening a state.

    >>> issubclass(SchemaError, ConfigError)
    True
    """


class UnknownSchemeError(ConfigError):
    """A URL or a setting has an unknown value; ``known`` lists the known ones.

    >>> UnknownSchemeError("mysql", known=["memory", "postgresql"]).known
    ('memory', 'postgresql')
    """

    def __init__(self, given: str, *, known: Sequence[str], setting: str = "URL scheme") -> None:
        self.given = given
        self.known = tuple(known)
        super().__init__(f"unknown {setting} {given!r}: known are {', '.join(self.known)}")


def pip_line(extras: str) -> str:
    """Return the command that installs extras. On PyPI, the name is that of another package.

    >>> pip_line("redis")
    "pip install '.[redis]' in the folder of the project (or 'holdfast[redis]' from your own index)"
    """
    return (
        f"pip install '.[{extras}]' in the folder of the project "
        f"(or 'holdfast[{extras}]' from your own index)"
    )


class MissingExtraError(ConfigError, ImportError):
    """An optional dependency is not installed; the message has the ``pip`` command.

    >>> str(MissingExtraError("redis", "redis")).partition(" in ")[0]
    "redis needs the extra 'redis': pip install '.[redis]'"
    >>> MissingExtraError("it", "redis", "objects").extra
    'redis,objects'
    """

    def __init__(self, what: str, *extras: str) -> None:
        self.what = what
        self.extra = ",".join(extras)
        named = ", ".join(map(repr, extras))
        lacking = f"needs the extra {named}"
        if len(extras) > 1:
            lacking = f"cannot run without the extras {named}"
        super().__init__(f"{what} {lacking}: {pip_line(self.extra)}")


class SchemaError(ConfigError):
    """The database schema has version ``have``, and this code needs ``want``.

    >>> SchemaError(have=3, want=5).want
    5
    """

    def __init__(self, *, have: int, want: int, message: str = "") -> None:
        self.have = have
        self.want = want
        super().__init__(
            message
            or (
                f"the schema is at version {have} and this code needs {want}: "
                + (
                    "run `holdfast db migrate`, or set HOLDFAST_AUTO_MIGRATE=1"
                    if have < want
                    else "upgrade holdfast"
                )
            )
        )


class BackPressureError(HoldfastError):
    """The store refuses writes for now; nothing was written.

    >>> BackPressureError(retry_after_seconds=2.0).retry_after_seconds
    2.0
    """

    def __init__(self, *, retry_after_seconds: float, message: str = "") -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            message or f"too much is waiting to be flushed: retry after {retry_after_seconds:g} s"
        )


class EngineError(HoldfastError):
    """A server that an engine uses failed; the call itself was valid.

    >>> EngineError("postgres", "out of disk").engine
    'postgres'
    """

    def __init__(self, engine: str, message: str) -> None:
        self.engine = engine
        super().__init__(f"{engine}: {message}")


class UnavailableError(EngineError, ConnectionError):
    """The server cannot be reached; nothing was written, so a retry is safe.

    >>> isinstance(UnavailableError("redis", "connection refused"), ConnectionError)
    True
    """


class TimedOutError(EngineError, TimeoutError):
    """No answer in time; the write may have been done, so retry only with the same id.

    >>> isinstance(TimedOutError("postgres", "no answer in 5 s"), TimeoutError)
    True
    """
