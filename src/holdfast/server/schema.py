"""Checks JSON against A2A's schema; errors name the field and the fix.

protobuf's own parser ignores an unknown enum value, accepts a text for an object, and drops bytes
that are not base64. So the JSON is compared with the schema before it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.timestamp_pb2 import Timestamp

from holdfast.values.errors import InvalidInputError

MAX_PAGE = 100
"""Maximum items of one page."""

_REPORTED = 10
"""Maximum missing fields that an error lists."""

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: range(-(1 << 31), 1 << 31),
    FieldDescriptor.CPPTYPE_INT64: range(-(1 << 63), 1 << 63),
    FieldDescriptor.CPPTYPE_UINT32: range(1 << 32),
    FieldDescriptor.CPPTYPE_UINT64: range(1 << 64),
}
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]*={0,2}\s*")
_INDEX = re.compile(r"\[\d+\]")
_NAMES: dict[str, tuple[str, ...]] = {
    "id": ("message.message_id", "id"),
    "session_id": ("message.context_id", "context_id"),
    "task_id": ("message.task_id", "task_id", "id"),
    "config_id": ("id",),
    "cursor": ("page_token",),
    "limit": ("page_size",),
    "history_length": ("configuration.history_length", "history_length"),
}
"""Field name in the ledger, and its paths in requests: the first path that exists is used."""


def check_schema(value: object, schema: Descriptor, *, strict: bool = False) -> None:
    """Raise if JSON does not fit an A2A message; unknown fields are ignored unless ``strict``.

    >>> from a2a.types import a2a_pb2
    >>> check_schema({"message": {"role": "user"}}, a2a_pb2.SendMessageRequest.DESCRIPTOR)
    Traceback (most recent call last):
    a2a.utils.errors.InvalidParamsError: message.role: must be ROLE_USER or ROLE_AGENT
    """
    for path, problem in _object(value, schema, "", strict=strict):
        raise InvalidParamsError(message=f"{path or 'params'}: {problem}")


def check_query(query: Mapping[str, str], schema: Descriptor) -> None:
    """Raise if query parameters, which are all text, do not fit the schema.

    >>> from a2a.types import a2a_pb2
    >>> check_query({"includeArtifacts": "maybe"}, a2a_pb2.ListTasksRequest.DESCRIPTOR)
    Traceback (most recent call last):
    a2a.utils.errors.InvalidParamsError: includeArtifacts: must be true or false
    """
    fields = {field.json_name: field for field in schema.fields}
    truth = {"true": True, "false": False}
    check_schema(
        {
            name: truth.get(given.lower(), given)
            if name in fields and fields[name].cpp_type == FieldDescriptor.CPPTYPE_BOOL
            else given
            for name, given in query.items()
        },
        schema,
    )


Misfits = Iterator[tuple[str, str]]


def _object(value: object, schema: Descriptor, path: str, *, strict: bool = False) -> Misfits:
    if not isinstance(value, dict):
        yield path, "must be an object"
        return
    by_name = {field.json_name: field for field in schema.fields}
    chosen: set[str] = set()
    for name, given in value.items():
        field = by_name.get(name) or schema.fields_by_name.get(name)
        at = f"{path}.{name}" if path else name
        if field is None:
            if strict:
                yield _quoted(at), f"is not a field here: known are {', '.join(by_name)}"
            continue
        if given is None:
            continue
        choice = field.containing_oneof
        if choice is not None and len(choice.fields) > 1:
            if choice.name in chosen:
                yield path, f"must have only one of {_or([one.json_name for one in choice.fields])}"
            chosen.add(choice.name)
        yield from _field(given, field, at)


def _quoted(path: str) -> str:
    """Return a client's field name, shortened to fit a line."""
    return path if path.isascii() and path.isprintable() and len(path) <= 80 else repr(path[:80])


def _field(value: object, field: FieldDescriptor, path: str) -> Misfits:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return
    if not field.is_repeated:
        yield from _single(value, field, path)
    elif not isinstance(value, list):
        yield path, "must be a list"
    else:
        for at, item in enumerate(value):
            if item is None:
                yield f"{path}[{at}]", "must not be null"
            yield from _single(item, field, f"{path}[{at}]")


def _single(value: object, field: FieldDescriptor, path: str) -> Misfits:
    if field.message_type is not None:
        yield from _message(value, field.message_type, path)
    elif field.enum_type is not None:
        if not _is_member(value, field.enum_type):
            yield path, f"must be {_or(_members(field.enum_type))}"
    elif field.cpp_type in _INTEGERS:
        number, known = _integer(value), _INTEGERS[field.cpp_type]
        if number is None:
            yield path, "must be a whole number"
        elif number not in known:
            yield path, f"must be from {known[0]} to {known[-1]}"
    elif problem := _problem(value, field):
        yield path, problem


def _problem(value: object, field: FieldDescriptor) -> str:
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "" if isinstance(value, bool) else "must be true or false"
    if field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
        return ""
    if not isinstance(value, str):
        return "must be text"
    not_base64 = field.type == FieldDescriptor.TYPE_BYTES and not is_base64(value)
    return "must be base64" if not_base64 else ""


def _message(value: object, schema: Descriptor, path: str) -> Misfits:
    match schema.full_name:
        case "google.protobuf.Value":
            return
        case "google.protobuf.Struct":
            if not isinstance(value, dict):
                yield path, "must be an object"
        case "google.protobuf.Timestamp":
            if not (isinstance(value, str) and _is_time(value)):
                yield path, "must be a time such as 2026-01-31T12:00:00Z"
        case _:
            yield from _object(value, schema, path)


def is_base64(text: str) -> bool:
    """Return whether a text is base64, in either alphabet, with or without padding.

    >>> is_base64("aGk="), is_base64("a-_b"), is_base64("***")
    (True, True, False)
    """
    return _BASE64.fullmatch(text) is not None


def _is_time(text: str) -> bool:
    try:
        Timestamp().FromJsonString(text)
    except (ValueError, OverflowError, AttributeError):
        return False
    return True


def _integer(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == value // 1 else None


def _is_member(value: object, enum: EnumDescriptor) -> bool:
    if isinstance(value, str) and value in enum.values_by_name:
        return True
    number = _integer(value)
    return number is not None and number in enum.values_by_number


def _members(enum: EnumDescriptor) -> list[str]:
    """Return the names of an enum's values, except value 0, which means unspecified."""
    return [one.name for one in enum.values if one.number]


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def check_page_size(size: int) -> None:
    """Raise for a page size below 1 or above ``MAX_PAGE``.

    >>> check_page_size(50)
    """
    if not 1 <= size <= MAX_PAGE:
        raise InvalidInputError("page_size", f"must be from 1 to {MAX_PAGE}")


def check_required(message: ProtoMessage, *, json_names: bool) -> None:
    """Raise if a message lacks fields that A2A requires; the error lists them.

    >>> from a2a.types import a2a_pb2
    >>> check_required(a2a_pb2.GetTaskRequest(), json_names=True)
    Traceback (most recent call last):
    a2a.utils.errors.InvalidParamsError: id: is required
    """
    try:
        validate_proto_required_fields(message)
    except InvalidParamsError as error:
        found = (error.data or {}).get("errors", [])[:_REPORTED]
    else:
        return
    listed = []
    for one in found:
        field = _field_at(message.DESCRIPTOR, _INDEX.sub("", one["field"]))
        problem = "is required"
        if field is not None and field.is_repeated:
            problem = "must not be empty"
        elif field is not None and field.enum_type is not None:
            problem = f"must be {_or(_members(field.enum_type))}"
        name = camel(one["field"]) if json_names else one["field"]
        listed.append({"field": name, "message": problem})
    raise InvalidParamsError(
        message="; ".join(f"{one['field']}: {one['message']}" for one in listed),
        data={"errors": listed},
    )


def camel(path: str) -> str:
    """Convert a path of protobuf field names to JSON names.

    >>> camel("message.message_id")
    'message.messageId'
    """
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path)


def _field_at(schema: Descriptor, path: str) -> FieldDescriptor | None:
    field: FieldDescriptor | None = None
    for name in path.split("."):
        if schema is None or name not in schema.fields_by_name:
            return None
        field = schema.fields_by_name[name]
        schema = field.message_type
    return field


def wire_name(field: str, params: object, *, json_names: bool) -> str:
    """Return the name that a request uses for a field of the ledger.

    >>> from a2a.types import a2a_pb2
    >>> wire_name("task_id", a2a_pb2.GetTaskRequest(), json_names=True)
    'id'
    """
    if field == "submit_key":
        return "Idempotency-Key"
    for path in _NAMES.get(field, ()):
        if isinstance(params, ProtoMessage):
            exists = _field_at(params.DESCRIPTOR, path) is not None
        else:
            exists = hasattr(params, path)
        if exists:
            field = path
            break
    return camel(field) if json_names else field
