"""Warnings that are shown once per process, also if logging is not configured."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("holdfast")
_said: set[str] = set()


def notice(text: str) -> None:
    """Log a warning once per process; print it on standard error if logging has no handler.

    ::

        notice("no storage is configured: state ends with this process")
    """
    if text in _said:
        return
    _said.add(text)
    _log.warning(text)
    listening = any(
        not isinstance(one, logging.NullHandler) for one in (*_log.handlers, *_log.root.handlers)
    )
    if not listening:
        print(f"holdfast: {text}", file=sys.stderr)  # noqa: T201 - there is no other way to be heard
