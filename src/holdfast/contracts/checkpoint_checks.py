"""Checks of checkpoints and writes before they are stored."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.checks import check_id, check_list, check_optional_id, check_text
from holdfast.values.errors import InvalidInputError

MAX_BYTES = 256 << 20
"""The most bytes that one call may store: all are sent in one statement."""

_INDEXES = range(-(1 << 31), 1 << 31)


def check_put(
    checkpoint: object, new_values: object
) -> tuple[Checkpoint, dict[str, TypedBytes | None]]:
    """Check a checkpoint. Returns it as it is stored, without its labels, and its new values.

    >>> nothing = TypedBytes("json", b"{}")
    >>> check_put(Checkpoint("t1", "", "c1", None, nothing, nothing), {})[1]
    {}
    """
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidInputError(
            "checkpoint", f"must be a Checkpoint, not {type(checkpoint).__name__}"
        )
    if checkpoint.values or checkpoint.writes:
        raise InvalidInputError(
            "checkpoint.values" if checkpoint.values else "checkpoint.writes",
            "must be empty: pass new_values to put, and writes to put_writes",
        )
    own = check_id("checkpoint.id", checkpoint.id)
    parent = checkpoint.parent
    if parent is not None and check_id("checkpoint.parent", parent) == own:
        raise InvalidInputError("checkpoint.parent", "must not be the checkpoint itself")
    _check_mapping("checkpoint.labels", checkpoint.labels)
    versions = {
        check_id("checkpoint.versions", channel): check_id(f"checkpoint.versions.{channel}", one)
        for channel, one in _check_mapping("checkpoint.versions", checkpoint.versions).items()
    }
    values = {
        _channel(channel, versions): (
            None if value is None else check_typed(f"new_values.{channel}", value)
        )
        for channel, value in _check_mapping("new_values", new_values).items()
    }
    checked = Checkpoint(
        checkpoint.thread,
        check_optional_id("checkpoint.namespace", checkpoint.namespace),
        own,
        parent,
        check_typed("checkpoint.body", checkpoint.body),
        check_typed("checkpoint.metadata", checkpoint.metadata),
        versions=versions,
    )
    _check_size(
        "new_values", [checked.body, checked.metadata, *(one for one in values.values() if one)]
    )
    return checked, values


def check_writes(writes: object) -> list[Write]:
    """Check writes, and keep one for each task and index.

    The first one is kept; for an index below 0, the last one.

    >>> value = TypedBytes("json", b"1")
    >>> len(check_writes([Write("t", 0, "a", value), Write("t", 0, "b", value)]))
    1
    """
    found: dict[tuple[str, int], Write] = {}
    for at, one in enumerate(check_list("writes", writes)):
        field = f"writes[{at}]"
        if not isinstance(one, Write):
            raise InvalidInputError(field, f"must be a Write, not {type(one).__name__}")
        index = _check_index(f"{field}.index", one.index)
        checked = Write(
            check_id(f"{field}.task", one.task),
            index,
            check_id(f"{field}.channel", one.channel),
            check_typed(f"{field}.value", one.value),
            check_text(f"{field}.path", one.path),
        )
        if index < 0 or (checked.task, index) not in found:
            found[checked.task, index] = checked
    _check_size("writes", [one.value for one in found.values()])
    return list(found.values())


def _check_index(field: str, index: object) -> int:
    if type(index) is not int or index not in _INDEXES:
        raise InvalidInputError(field, "must be a whole number of 32 bits")
    return index


def check_typed(field: str, value: object) -> TypedBytes:
    """Check a kind and bytes, given as ``TypedBytes`` or as a plain pair.

    >>> check_typed("body", ("json", b"{}"))
    TypedBytes(kind='json', data=b'{}')
    """
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidInputError(field, f"must be TypedBytes, not {type(value).__name__}")
    if type(value) is TypedBytes and type(value.kind) is str and type(value.data) is bytes:
        check_id(f"{field}.kind", value.kind)
        return value
    kind, data = value
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidInputError(f"{field}.data", f"must be bytes, not {type(data).__name__}")
    return TypedBytes(check_id(f"{field}.kind", kind), bytes(data))


def _channel(channel: object, versions: Mapping[str, str]) -> str:
    if type(channel) is str and channel in versions:
        return channel
    name = check_id("new_values", channel)
    if name not in versions:
        raise InvalidInputError(
            f"new_values.{name}", "has no version: name one in checkpoint.versions"
        )
    return name


def _check_mapping(field: str, value: object) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, f"must be a dict, not {type(value).__name__}")
    return value


def _check_size(field: str, values: list[TypedBytes]) -> None:
    size = sum(len(one.data) for one in values)
    if size > MAX_BYTES:
        raise InvalidInputError(
            field, f"has {size} bytes, and at most {MAX_BYTES} are allowed: store it as a blob"
        )
