"""The types that a question may name for its answer."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.contracts.tasks.answer_schemas import fitting_value
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError


def schema_of(wanted: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; a JSON Schema is returned as it is.

    Dataclasses, ``TypedDict``, enums, the types of ``typing`` and pydantic's models have one.

    >>> schema_of(bool)
    {'type': 'boolean'}
    """
    if isinstance(wanted, dict):
        return wanted
    if hasattr(wanted, "model_json_schema"):
        found: dict[str, Any] = wanted.model_json_schema()
        return found
    try:
        return msgspec.json.schema(wanted)
    except TypeError as error:
        raise InvalidInputError(
            "schema",
            f"must be a JSON Schema or a type that has one, such as a dataclass: {error}",
        ) from None


def typed_answer(wanted: Any, stored: dict[str, Any], answer: ChatMessage) -> Any:
    """Return an answer as the type that the question named.

    >>> typed_answer(bool, {"value": True}, ChatMessage.user("true"))
    True
    """
    # An answer that was given before the question had a schema has no value yet.
    value = stored["value"] if "value" in stored else fitting_value(schema_of(wanted), answer)
    if isinstance(wanted, dict):
        return value
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(value)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            "message", f"does not fit the type of the question: {error}"
        ) from None
