"""Error texts for requests that do not fit the schema of A2A 0.3 or of Holdfast's own methods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from a2a.compat.v0_3 import a2a_v0_3_pb2 as old_a2a
from a2a.utils.errors import InvalidParamsError
from pydantic import ValidationError

from holdfast.server.schema import is_base64

_PARTS = {"text": "TextPart", "file": "FilePart", "data": "DataPart"}
_KINDS = "must be text, file or data"
_ROLES = "must be agent or user"
_PROBLEMS = {
    "missing": "is required",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}
_TYPES = {"str": "text", "int": "a whole number", "object": "an object", "null": "null"}
_EXPECTED = re.compile(r"Expected `([^`]+)`.*? - at `\$\.?([^`]+)`")
_MISSING = re.compile(r"missing required field `([^`]+)`(?: - at `\$\.?([^`]*)`)?")


def old_misfit(error: ValidationError, body: Mapping[str, Any]) -> str:
    """Return the first problem of a JSON-RPC request of 0.3, with the field name and the fix."""
    problems = error.errors(include_url=False, include_input=False)
    first = problems[0]
    part_at = next((at for at, one in enumerate(first["loc"]) if one in _PARTS.values()), None)
    if part_at is not None:
        # pydantic lists the problems of a part once for each kind that it could be.
        where = first["loc"][:part_at]
        part = _value_at(body, where)
        if not isinstance(part, dict):
            return f"{_path(where)}: must be an object"
        kind = part.get("kind")
        if not isinstance(kind, str) or kind not in _PARTS:
            return f"{_path((*where, 'kind'))}: {_KINDS}"
        meant = (*where, _PARTS[kind])
        first = next(
            (one for one in problems if one["loc"][: len(meant)] == meant),
            first,
        )
    problem = _PROBLEMS.get(first["type"], "does not fit the schema of A2A 0.3")
    if (first["type"], first["loc"][-1]) == ("missing", "role"):
        problem = _ROLES
    elif first["type"] in {"enum", "literal_error"}:
        problem = f"must be {first['ctx']['expected']}".replace("'", "")
    return f"{_path(first['loc'])}: {problem}"


def _value_at(body: Any, where: Sequence[str | int]) -> Any:
    for one in where:
        body = body[one]
    return body


def _path(where: Sequence[str | int]) -> str:
    """Return the path of a field in the params, without the names of Python classes."""
    found = ""
    for one in where[1:] if where[:1] == ("params",) else where:
        if isinstance(one, int):
            found += f"[{one}]"
        elif not one[:1].isupper():
            found += f".{one}" if found else one
    return found or "params"


def check_old_files(params: Mapping[str, Any]) -> None:
    """Raise for a file of 0.3 whose bytes are not base64: the SDK would drop them silently.

    >>> check_old_files({"message": {"parts": [{"kind": "file", "file": {"bytes": "aGk="}}]}})
    """
    message = params.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    for at, part in enumerate(parts if isinstance(parts, list) else ()):
        file = part.get("file") if isinstance(part, dict) else None
        content = file.get("bytes") if isinstance(file, dict) else None
        if isinstance(content, str) and not is_base64(content):
            raise InvalidParamsError(message=f"message.parts[{at}].file.bytes: must be base64")


def check_old_send(request: old_a2a.SendMessageRequest) -> None:
    """Raise for a message of 0.3 over HTTP+JSON that lacks a field that 1.0 requires.

    >>> check_old_send(old_a2a.SendMessageRequest())
    Traceback (most recent call last):
    a2a.utils.errors.InvalidParamsError: message: is required
    """
    said = request.request
    problem = ""
    if not request.HasField("request"):
        problem = "message: is required"
    elif not said.message_id:
        problem = "message.messageId: is required"
    elif not said.role:
        problem = "message.role: must be ROLE_USER or ROLE_AGENT"
    elif not said.content:
        problem = "message.content: must not be empty"
    if problem:
        raise InvalidParamsError(message=problem)


def own_misfit(error: msgspec.ValidationError) -> str:
    """Return the text for a problem with the params of one of Holdfast's own methods.

    >>> own_misfit(msgspec.ValidationError("Expected `int`, got `str` - at `$.pageSize`"))
    'pageSize: must be a whole number'
    """
    text = str(error)
    if found := _MISSING.search(text):
        path = f"{found[2]}.{found[1]}" if found[2] else found[1]
        return f"{path}: is required"
    if found := _EXPECTED.search(text):
        kinds = " or ".join(_TYPES.get(one, one) for one in found[1].split(" | "))
        return f"{found[2]}: must be {kinds}"
    # msgspec's text names the field and JSON types, and nothing of Python.
    return text
