"""Logs retries to Holdfast's own loggers, with the cause."""

from __future__ import annotations

import logging

_THEIRS = logging.getLogger("stamina")


class _RetryLog(logging.Filter):
    """Forwards the log records of our retries to the logger of the same name.

    The library that retries calls logs to its own logger, without the cause in the text. Records of
    other users of the library in the process are left alone.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        facts = vars(record)
        name = str(facts.get("stamina.callable", ""))
        if not name.startswith("holdfast."):
            return True
        logging.getLogger(name).log(
            record.levelno,
            "trying again in %.2f s, after %s",
            facts.get("stamina.wait_for", 0.0),
            facts.get("stamina.caused_by"),
        )
        return False


_RETRY_LOG = _RetryLog()


def tell_retries() -> None:
    """Log retries from now on under a name such as ``holdfast.postgres``.

    >>> tell_retries()
    """
    _THEIRS.addFilter(_RETRY_LOG)
