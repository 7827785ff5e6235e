"""Checks of the lines of an archive file, which is untrusted input."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.spi.archive.kinds import Kind
from holdfast.spi.archive.records import Record
from holdfast.spi.archive.vectors import unpack_vector
from holdfast.values.checks import check_optional_id, check_text, check_time, check_vector
from holdfast.values.codec import decode_json
from holdfast.values.errors import CodecError, InvalidInputError

MAX_LINE_BYTES = 256 << 20
_MOST = 1 << 53
_INT32, _INT16 = (1 << 31) - 1, (1 << 15) - 1
_JSON_FIELDS = frozenset(
    {
        *("metadata", "body", "properties", "value", "message", "event", "authentication"),
        *("result", "ask_form", "blocks"),
    }
)
_FREE_TEXT = frozenset(
    {
        *("content", "topic", "source", "title", "note", "agent_label", "text", "url", "token"),
        *("last_error", "name", "path", "digest", "content_type", "cron", "timezone"),
    }
)
_INT62 = 1 << 62
_BOUNDS = {
    "epoch": _INT32,
    "index": _INT32,
    "priority": _INT16,
    "key_number": _INT62,
    "first_number": _INT62,
}


def read_record(kind: Kind, line: bytes, *, at: str) -> Record:
    """Decode and check the record in a line of an archive. ``at`` names the line in errors.

    >>> from holdfast.spi.archive.kinds import BY_NAME
    >>> read_record(BY_NAME["channels"], b'{"name":"alerts","newest":3}', at="line 1")
    ChannelRecord(name='alerts', newest=3)
    """
    if len(line) > MAX_LINE_BYTES:
        raise InvalidInputError(at, f"is longer than {MAX_LINE_BYTES} bytes: it is not a record")
    try:
        record = msgspec.json.decode(line, type=kind.record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(at, f"is not a record of {kind.name}: {error}") from error
    _check(record, at)
    return record


def _check(record: Record, at: str) -> None:
    for field in record.__struct_fields__:
        value = getattr(record, field)
        if value is not None:
            _check_value(value, field, f"{at}.{field}")


def _check_value(value: Any, field: str, at: str) -> None:
    check = _CHECKS.get(type(value))
    if check is not None:
        check(value, field, at)
    elif isinstance(value, Record):
        _check(value, at)


def _check_str(value: str, field: str, at: str) -> None:
    if field in _JSON_FIELDS:
        _check_json(value, at)
    elif field in _FREE_TEXT:
        check_text(at, value)
    else:
        check_optional_id(at, value)


def _check_json(text: str, at: str) -> None:
    try:
        decode_json(check_text(at, text))
    except CodecError as error:
        raise InvalidInputError(at, f"is not the JSON text of a value: {error}") from error


def _check_int(value: int, field: str, at: str) -> None:
    least = -_INT32 if field == "index" else 0
    if not least <= value <= _BOUNDS.get(field, _MOST):
        raise InvalidInputError(at, f"is out of range: {value}")


def _check_float(value: float, _: str, at: str) -> None:
    if not math.isfinite(value):
        raise InvalidInputError(at, "must be a finite number")


def _check_datetime(value: datetime, _: str, at: str) -> None:
    check_time(at, value)


def _check_bytes(value: bytes, field: str, at: str) -> None:
    if field in ("vector", "vectors"):
        if len(value) % 4:
            raise InvalidInputError(at, "is not a vector of 32-bit floats")
        check_vector(at, unpack_vector(value))


def _check_tuple(values: tuple[Any, ...], field: str, at: str) -> None:
    for number, value in enumerate(values):
        _check_value(value, field, f"{at}[{number}]")


def _check_dict(values: dict[str, str], field: str, at: str) -> None:
    for key, value in values.items():
        if field == "versions":
            check_optional_id(at, key)
            check_optional_id(at, value)
        else:
            check_text(at, key)
            _check_json(value, at)


_CHECKS: dict[type, Callable[[Any, str, str], None]] = {
    str: _check_str,
    int: _check_int,
    float: _check_float,
    datetime: _check_datetime,
    bytes: _check_bytes,
    tuple: _check_tuple,
    dict: _check_dict,
}
