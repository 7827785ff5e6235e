"""What is tried again is told by our own loggers, with the cause."""

from __future__ import annotations

import logging

_THEIRS = logging.getLogger("stamina")


class _RetryLog(logging.Filter):
    """Sends the lines about retries of ours on to the logger that they are named by.

    The library that repeats calls has its lines in a logger of its own, without the cause in the
    text; whatever else uses it in the process is left alone.
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
    """From now on, retries under a name such as ``holdfast.postgres`` are told by that logger.

    >>> tell_retries()
    """
    _THEIRS.addFilter(_RETRY_LOG)
