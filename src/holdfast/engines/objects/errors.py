"""Maps driver errors to Holdfast's: by class, and for a generic class by the server's message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from obstore import exceptions

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

ENGINE = "objects"

_QUERY = re.compile(r"\?[^\s\"'<>]*=[^\s\"'<>]*")
_ANSWER = re.compile(r"<\?xml.*?<Code>(.*?)</Code>\s*<Message>(.*?)</Message>.*", re.DOTALL)
_STATUS = re.compile(r"status: (\d{3})|status code: (\d{3})")
_REFUSED_FOR_NOW = {429, 503}
_FULL = re.compile(r"os error (28|122)\b")


def to_holdfast(error: BaseException, *, wrote: bool) -> HoldfastError:
    """Return Holdfast's error for a driver's; ``wrote``: the failed request may have written.

    >>> to_holdfast(ConnectionRefusedError("no server"), wrote=True)
    UnavailableError('objects: no server')
    """
    if isinstance(error, HoldfastError):
        return error
    for kind in type(error).__mro__:
        if kind in BY_CLASS:
            return BY_CLASS[kind](str(error), wrote)
    return EngineError(ENGINE, f"{type(error).__name__}: {_tidy(str(error))}")


def _tidy(text: str) -> str:
    """Return the driver's message without its debug dump and the query of a signed URL."""
    said = text.partition("\n\nDebug source:")[0].strip()
    return _QUERY.sub("?…", _ANSWER.sub(r"\1: \2", said))


def _lost(text: str, wrote: bool) -> HoldfastError:
    if wrote:
        return TimedOutError(ENGINE, f"the response was lost ({_tidy(text)})")
    return UnavailableError(ENGINE, _tidy(text))


def _denied(text: str, _wrote: bool) -> HoldfastError:
    return ConfigError(f"{ENGINE}: {_tidy(text)}: check the credentials and their rights")


def _missing(text: str, _wrote: bool) -> HoldfastError:
    if "NoSuchBucket" in text:
        return ConfigError(f"{ENGINE}: {_tidy(text)}: create the bucket, or name another")
    return NotFoundError("object", "", f"{ENGINE}: {_tidy(text)}")


def _generic(text: str, wrote: bool) -> HoldfastError:
    """Map the driver's generic class: errors of the network, the server and the disk."""
    status = _STATUS.search(text)
    number = int(status[1] or status[2]) if status else 0
    # A rename fails if a sweep deleted the file while it was written: the grace is too short.
    nothing_written = "kind: Connect" in text or "UnableToRename" in text or _FULL.search(text)
    if nothing_written or number in _REFUSED_FOR_NOW:
        return UnavailableError(ENGINE, _tidy(text))
    if "HttpError" in text and "builder error" in text:
        return ConfigError(
            f"{ENGINE}: the endpoint cannot be used as it is written: check it, and add "
            "allow_http=true if it is plain http://"
        )
    if number >= 500 or "HttpError" in text:
        return _lost(text, wrote)
    return EngineError(ENGINE, _tidy(text))


BY_CLASS: dict[type[BaseException], Callable[[str, bool], HoldfastError]] = {
    exceptions.AlreadyExistsError: lambda text, _: ConflictError("object", "", _tidy(text)),
    exceptions.PreconditionError: lambda text, _: ConflictError("object", "", _tidy(text)),
    exceptions.NotFoundError: _missing,
    FileNotFoundError: _missing,
    exceptions.PermissionDeniedError: _denied,
    exceptions.UnauthenticatedError: _denied,
    PermissionError: _denied,
    exceptions.UnknownConfigurationKeyError: lambda text, _: ConfigError(
        f"{ENGINE}: {_tidy(text)} Correct the parameters of the URL."
    ),
    exceptions.NotSupportedError: lambda text, _: NotSupportedError(
        ENGINE, "this request", why=_tidy(text)
    ),
    exceptions.InvalidPathError: lambda text, _: EngineError(ENGINE, _tidy(text)),
    exceptions.NotModifiedError: lambda text, _: EngineError(ENGINE, _tidy(text)),
    exceptions.JoinError: _lost,
    exceptions.GenericError: _generic,
    exceptions.BaseError: lambda text, _: EngineError(ENGINE, _tidy(text)),
    ConnectionRefusedError: lambda text, _: UnavailableError(ENGINE, _tidy(text)),
    OSError: _lost,
    ValueError: lambda text, _: ConfigError(f"{ENGINE}: {_tidy(text)}: check the URL"),
}
"""Holdfast's error for each driver error; a test checks that none is missing."""


@contextmanager
def mapped(*, wrote: bool) -> Iterator[None]:
    """Raise Holdfast's error in place of a driver's."""
    try:
        yield
    except (exceptions.BaseError, OSError, ValueError) as error:
        if isinstance(error, HoldfastError):
            raise
        raise to_holdfast(error, wrote=wrote) from error
