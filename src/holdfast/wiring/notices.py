"""What a program should know once, also one that has not set up logging."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("holdfast")
_said: set[str] = set()


def notice(text: str) -> None:
    """Log a warning, once in a process; on standard error where nobody listens to the log.

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
