"""JSON Schemas of questions, and the value that an answer gives for one.

The app writes the schema; the answer is untrusted input. Patterns are matched in linear time,
references are never fetched, and errors do not quote the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.spi.tasks.stored import text_bytes
from holdfast.values.codec import decode_json, encode_object, plain, spell_path
from holdfast.values.content import ChatMessage, DataBlock
from holdfast.values.errors import CodecError, InvalidInputError

if TYPE_CHECKING:
    import jsonschema_rs

MAX_SCHEMA_BYTES = 65_536
"""The largest schema of a question, as JSON text."""

_MOST_OF_AN_ERROR = 300


def check_schema(schema: object) -> dict[str, Any]:
    """Check the JSON Schema of a question, of any draft from 4 to 2020-12.

    >>> check_schema({"type": "integer"})
    {'type': 'integer'}
    """
    text = encode_object(schema, field="schema")
    if text_bytes(text) > MAX_SCHEMA_BYTES:
        raise InvalidInputError(
            "schema", f"must be at most {MAX_SCHEMA_BYTES} bytes as JSON, not {text_bytes(text)}"
        )
    checked: dict[str, Any] = decode_json(text)
    _compile(checked)
    return checked


def fitting_value(schema: dict[str, Any], answer: ChatMessage) -> Any:
    """Return the value of an answer that fits the schema, or raise ``InvalidInputError``.

    The error has the path of what does not fit. The value is the data of the message's data block;
    of several, the list of them. Without a data block it is the text parsed as JSON, or else the
    text itself.

    >>> fitting_value({"type": "integer"}, ChatMessage.user("7"))
    7
    """
    validator, refused = _compile(schema), list[InvalidInputError]()
    candidates = list(_candidates(answer))
    for value in candidates:
        try:
            return _checked(validator, value)
        except InvalidInputError as error:
            refused.append(error)
    wanted = _properties(schema)
    if not wanted or isinstance(candidates[0], dict):
        raise refused[0]
    write = "" if len(candidates) > 1 or _has_data(answer) else ": the text is not JSON"
    raise InvalidInputError(
        "message", f"must be a JSON object with the properties {wanted}{write}"
    ) from refused[0]


def _properties(schema: dict[str, Any]) -> str:
    """Return the names of the properties, if the schema is of an object that has any."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        # Drafts before 2019-09 do not say what $defs is.
        among = schema.get("$defs")
        known = among if isinstance(among, dict) else {}
        found = known.get(reference.removeprefix("#/$defs/"))
        schema = found if isinstance(found, dict) else {}
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return ""
    required = schema.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in properties]
    return ", ".join(names)[:_MOST_OF_AN_ERROR]


def _has_data(answer: ChatMessage) -> bool:
    return any(isinstance(block, DataBlock) for block in answer.content)


def _checked(validator: jsonschema_rs.Validator, value: Any) -> Any:
    checked = plain(value, field="message")
    error = next(validator.iter_errors(checked), None)
    if error is None:
        return checked
    path = spell_path(("message", *error.instance_path))
    raise InvalidInputError(path, error.message[:_MOST_OF_AN_ERROR])


def _candidates(answer: ChatMessage) -> Iterator[Any]:
    """Yield the values that an answer may stand for, the most likely first."""
    data = [block.data for block in answer.content if isinstance(block, DataBlock)]
    if data:
        yield data[0] if len(data) == 1 else data
        return
    # A text that is not JSON can only be a text.
    with suppress(CodecError, RecursionError):
        yield decode_json(answer.text)
    yield answer.text


def _compile(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    import jsonschema_rs  # noqa: PLC0415 - 30 ms that only questions with a schema need

    try:
        return jsonschema_rs.validator_for(
            schema,
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(),
            validate_formats=True,
            mask="the value",
        )
    except jsonschema_rs.ValidationError as error:
        path = spell_path(("schema", *error.instance_path))
        raise InvalidInputError(
            path, f"is not a usable JSON Schema: {error.message[:_MOST_OF_AN_ERROR]}"
        ) from None
