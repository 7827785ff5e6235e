"""Checks of ids, limits and vectors, with the same errors on every engine.

They run before the first write, so that every engine refuses bad input in the same way and writes
nothing.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence, Sized
from datetime import UTC, datetime, timedelta

from holdfast.values.errors import InvalidInputError
from holdfast.values.owners import OWNED, RESERVED

MAX_ID_BYTES = 512
_MAX_OWNED_BYTES = 2 * MAX_ID_BYTES + len(OWNED) + len("512::")
_ID_LENGTHS = range(1, MAX_ID_BYTES + 1)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_MIN_NORM, _MAX_NORM = 1e-15, 1e15


def check_id(field: str, value: object) -> str:
    """Check an id: 1 to 512 bytes of UTF-8 without control characters.

    >>> check_id("session_id", "s1")
    's1'
    """
    if type(value) is str and value.isascii() and value.isprintable() and len(value) in _ID_LENGTHS:
        # The fast path of nearly all ids: in ASCII a character is a byte, and only control
        # characters are not printable.
        return value
    text = check_text(field, value)
    if not text:
        raise InvalidInputError(field, "must not be empty")
    # A stored id consists of an owner and an id, each of which was checked.
    most = _MAX_OWNED_BYTES if text.startswith(RESERVED) else MAX_ID_BYTES
    if len(text) > most or len(text.encode()) > most:
        raise InvalidInputError(field, f"must be at most {MAX_ID_BYTES} bytes of UTF-8")
    control = _CONTROL.search(text)
    if control:
        raise InvalidInputError(field, f"must not contain the control character {control[0]!r}")
    return text


def check_optional_id(field: str, value: object) -> str:
    """Check an id, or an empty string for none.

    >>> check_optional_id("run_id", "")
    ''
    """
    return "" if isinstance(value, str) and not value else check_id(field, value)


def check_absent_id(field: str, value: object) -> str:
    """Check an id. Returns ``""`` if it is ``None`` or empty.

    >>> check_absent_id("run_id", None), check_absent_id("run_id", "r1")
    ('', 'r1')
    """
    return "" if value is None else check_optional_id(field, value)


def check_unreserved(field: str, value: str) -> str:
    """Check an id from a caller: it must not begin with the library's reserved prefix.

    >>> check_unreserved("session_id", "c1")
    'c1'
    """
    if value.startswith(RESERVED):
        raise InvalidInputError(
            field, f"must not begin with {RESERVED!r}: such ids are reserved, choose another"
        )
    return value


def check_ids(field: str, values: object) -> list[str]:
    """Check a list of ids. Refuses a single string, which would be read letter by letter.

    >>> check_ids("ids", ["a", "b"])
    ['a', 'b']
    """
    return [check_id(f"{field}[{at}]", value) for at, value in enumerate(check_list(field, values))]


def check_list(field: str, values: object) -> Sequence[object]:
    """Check that a value is a list or a tuple.

    >>> check_list("titles", ["a"])
    ['a']
    """
    if not isinstance(values, (list, tuple)):
        raise InvalidInputError(field, f"must be a list, not {_called(values)}")
    return values


def _called(value: object) -> str:
    # Arrays of any library, and their numbers, convert to Python values in the same way.
    name = type(value).__name__
    return f"{name}: use .tolist()" if hasattr(value, "tolist") else name


def check_subject(value: object, field: str = "subject") -> str:
    """Check the id of the person whom content is about: an id that is not reserved.

    >>> check_subject("ana")
    'ana'
    """
    return check_unreserved(field, check_id(field, value))


def check_text(field: str, value: object) -> str:
    """Check text that UTF-8 can encode: any length, U+0000 included.

    >>> check_text("content", "low tide")
    'low tide'
    """
    if not isinstance(value, str):
        raise InvalidInputError(field, f"must be text, not {type(value).__name__}")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            field, f"holds a lone surrogate at position {error.start}: it is not Unicode text"
        ) from None
    return value


def check_count(field: str, value: object) -> int:
    """Check a whole number of at least 0: limits, offsets, depths.

    >>> check_count("limit", 0)
    0
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(field, f"must be a whole number, not {type(value).__name__}")
    if value < 0:
        raise InvalidInputError(field, f"must be 0 or more, not {value}")
    if value >= 1 << 63:
        raise InvalidInputError(field, "must be below 2^63")
    return value


def check_optional_count(field: str, value: object) -> int | None:
    """Check a count, or ``None`` for no limit.

    >>> check_optional_count("limit", None) is None
    True
    """
    return None if value is None else check_count(field, value)


def check_flag(field: str, value: object) -> bool:
    """Check a flag: ``True`` or ``False``, not another truthy or falsy value.

    >>> check_flag("superseded", True)
    True
    """
    if not isinstance(value, bool):
        raise InvalidInputError(field, f"must be True or False, not {type(value).__name__}")
    return value


def check_seconds(field: str, value: object) -> float:
    """Check a duration: above 0 and at most a hundred years.

    >>> check_seconds("ttl_seconds", 60)
    60
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInputError(field, f"must be a number of seconds, not {type(value).__name__}")
    if not 0 < value <= 3_155_760_000:
        raise InvalidInputError(field, f"must be above 0 and at most 100 years, not {value!r}")
    return value


_FIRST_TIME = datetime.min.replace(tzinfo=UTC) + timedelta(microseconds=1)
_LAST_TIME = datetime.max.replace(tzinfo=UTC) - timedelta(microseconds=1)
# The driver of Postgres takes the first and the last moment for infinity, and returns no time.


def check_time(field: str, value: object) -> datetime:
    """Check an aware datetime, and convert it to UTC.

    The first and the last ``datetime`` of Python are moved by a microsecond.

    >>> check_time("since", datetime(2030, 1, 1, tzinfo=UTC)).year
    2030
    """
    if not isinstance(value, datetime):
        raise InvalidInputError(field, f"must be a datetime, not {type(value).__name__}")
    if value.tzinfo is None:
        raise InvalidInputError(field, "must have a time zone, as in datetime.now(UTC)")
    try:
        found = value.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(field, "is outside the years 1 to 9999 in UTC") from None
    return min(max(found, _FIRST_TIME), _LAST_TIME)


def check_dimension(field: str, vector: Sized, dimension: int) -> None:
    """Check that a vector has the dimension of its collection.

    >>> check_dimension("embedding", [3.0, 4.0], 2)
    """
    if len(vector) != dimension:
        raise InvalidInputError(
            field, f"has dimension {len(vector)}, but the collection's is {dimension}"
        )


def check_vector(field: str, value: object, *, dimension: int | None = None) -> list[float]:
    """Check a vector of 32-bit floats: finite, with a usable norm and the collection's dimension.

    The norm has a lower and an upper bound because a 32-bit engine squares it.

    >>> check_vector("embedding", [3, 4])
    [3.0, 4.0]
    """
    numbers = check_list(field, value)
    if not numbers:
        raise InvalidInputError(field, "must not be empty")
    if not set(map(type, numbers)) <= {float, int}:
        for at, number in enumerate(numbers):
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise InvalidInputError(
                    f"{field}[{at}]", f"must be a number, not {_called(number)}"
                )
    if dimension is not None:
        check_dimension(field, numbers, dimension)
    layout = f"{len(numbers)}f"
    try:
        rounded = list(struct.unpack(layout, struct.pack(layout, *numbers)))
    except (OverflowError, struct.error):
        raise InvalidInputError(
            field, "holds a number beyond 32-bit floats: scale it down"
        ) from None
    norm = math.hypot(*rounded)
    if not math.isfinite(norm):
        raise InvalidInputError(field, "must be finite: NaN and infinity have no direction")
    if not _MIN_NORM <= norm <= _MAX_NORM:
        raise InvalidInputError(
            field, f"has length {norm:g}, too close to zero or too long: normalise it"
        )
    return rounded
