"""Log formats of long-running commands: one line per record, as plain text or JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from holdfast.wiring.settings import Settings
from holdfast.wiring.telemetry import span_ids

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes that every log record has; all others were passed with ``extra``."""


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, text, and the extra fields of the record.

    >>> record = logging.makeLogRecord({"msg": "task t1: completed", "task": "t1", "created": 0})
    >>> json.loads(JsonLines().format(record))["task"]
    't1'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class PlainLines(logging.Formatter):
    """Time, level, text, and the extra fields that are not in the text.

    >>> record = logging.makeLogRecord({"msg": "task t1: completed", "task": "t1", "seconds": 2})
    >>> PlainLines().format(record).endswith("task t1: completed  seconds=2")
    True
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line; a traceback follows on separate lines."""
        text = record.getMessage()
        words = {word.strip(":,") for word in text.split()}
        fields = "".join(
            f" {name}={value}" for name, value in _facts(record).items() if str(value) not in words
        )
        when = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        line = f"{when} {record.levelname.lower():7} {text}{fields and ' '}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class ErrorStream(logging.Handler):
    """Writes to the current ``sys.stderr``, so that a live display can replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record to standard error."""
        stream: TextIO = sys.stderr
        try:
            stream.write(self.format(record) + "\n")
            stream.flush()
        except (OSError, ValueError):
            # Standard error is closed: continue without logs.
            self.handleError(record)


def start_logs(*, as_json: bool, level: int = logging.INFO) -> None:
    """Send the log lines of Holdfast and of handlers to standard error.

    Only warnings and errors of other libraries are logged. ::

        start_logs(as_json=True)
    """
    handler = ErrorStream()
    handler.setFormatter(JsonLines() if as_json else PlainLines())
    if Settings.from_environment().otel:
        handler.addFilter(span_ids())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("holdfast").setLevel(level)


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _ORDINARY}
