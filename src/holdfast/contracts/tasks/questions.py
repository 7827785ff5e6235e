"""Questions whose answers are checked before the task continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.contracts.tasks.answer_schemas import check_schema, fitting_value
from holdfast.values.checks import check_list, check_text
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError

MAX_OPTIONS = 100
"""How many options a question may have."""


def check_form(options: object, schema: object) -> str | None:
    """Check the options or the schema of a question. Returns them as JSON text, or ``None``.

    >>> check_form(["yes", "no"], None)
    '{"options":["yes","no"]}'
    """
    if schema is not None:
        if options is not None:
            raise InvalidInputError("schema", "cannot be combined with options: use one of them")
        return encode_json({"schema": check_schema(schema)})
    if options is None:
        return None
    given = [check_text(f"options[{at}]", one) for at, one in enumerate(_listed(options))]
    if not all(one and one == one.strip() for one in given) or len(set(given)) < len(given):
        raise InvalidInputError(
            "options", "must be different texts, not empty, without spaces around them"
        )
    return encode_json({"options": given})


def _listed(options: object) -> Sequence[object]:
    found = check_list("options", options)
    if not 1 <= len(found) <= MAX_OPTIONS:
        raise InvalidInputError("options", f"must be 1 to {MAX_OPTIONS} texts, not {len(found)}")
    return found


def check_answer(form: str, answer: ChatMessage) -> dict[str, Any]:
    """Return what to store of an answer, or raise ``InvalidInputError`` if it does not fit.

    >>> check_answer('{"options":["yes","no"]}', ChatMessage.user("yes"))
    {}
    >>> check_answer('{"schema":{"type":"integer"}}', ChatMessage.user("7"))
    {'value': 7}
    """
    checks = decode_json(form) if form else {}
    if "schema" in checks:
        return {"value": fitting_value(checks["schema"], answer)}
    options = checks.get("options", [])
    if options and answer.text.strip() not in options:
        listed = ", ".join(map(repr, options))
        raise InvalidInputError("message", f"must be one of {listed}, not {answer.text[:80]!r}")
    return {}
