"""The form of a question that has a JSON Schema, and the value that a filled form gives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.studio.problems import Problem
from holdfast.values.codec import decode_json, spell_path
from holdfast.values.errors import CodecError, InvalidInputError
from holdfast.values.tasks.records import TaskRecord

MOST_FIELDS = 40
"""A schema with more properties is answered as one JSON text."""

PREFIX = "f."
"""Prefix of the names of the inputs."""

_MOST_REFS = 8
_MOST_CHOICES = 100
Kind = Literal["text", "long", "integer", "number", "choice", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """One input of the form."""

    name: str
    """The property that the input sets; empty for the whole answer."""

    kind: Kind
    label: str
    hint: str = ""
    required: bool = True
    choices: tuple[tuple[str, str], ...] = ()
    """The values of a choice as JSON, each with its text."""

    value: str = ""
    error: str = ""
    least: float | None = None
    """The smallest number that fits, if the schema has one; a browser refuses smaller ones."""

    most: float | None = None

    @property
    def input(self) -> str:
        """The name of the input."""
        return PREFIX + self.name


@dataclass(frozen=True, slots=True)
class Form:
    """The form on the page: the inputs, the schema, and a problem that concerns no single input."""

    fields: list[Field]
    schema: dict[str, Any]
    error: str = ""


def schema_of(task: TaskRecord) -> dict[str, Any] | None:
    """Return the JSON Schema that an answer to a task's question must fit, or ``None``.

    ::

        schema_of(await state.tasks.get(task_id))
    """
    said = task.status_message
    found = said.metadata.get("schema") if said is not None else None
    return found if isinstance(found, dict) else None


def form_of(task: TaskRecord, problem: Problem | None = None) -> Form | None:
    """Return the form of a task's question; ``None`` if any text is a valid answer.

    ::

        form_of(task, Problem(task.id, error, form))
    """
    schema = schema_of(task)
    if schema is None:
        return None
    fields = fields_of(schema)
    if problem is None or problem.task_id != task.id:
        return Form(fields, schema)
    field = problem.error.field
    text = str(problem.error)[len(field) + 2 :]
    shown, found = [], False
    for one in fields:
        mine = bool(one.name) and f"{field}.".replace("[", ".").startswith(f"{_path(one.name)}.")
        found = found or mine
        value = problem.form.get(one.input, "")
        shown.append(replace(one, value=value, error=text if mine else ""))
    return Form(shown, schema, "" if found else text)


def fields_of(schema: Mapping[str, Any]) -> list[Field]:
    """Return the inputs for a schema: one for each property, or one for the whole answer.

    >>> [(one.name, one.kind) for one in fields_of({"type": "object", "properties": {"n": {"type": "integer"}}})]
    [('n', 'integer')]
    >>> fields_of({"enum": ["tea", "rum"]})[0].choices
    (('"tea"', 'tea'), ('"rum"', 'rum'))
    """  # noqa: E501 - a doctest is one line
    top = _resolved(schema, schema)
    properties = top.get("properties")
    if isinstance(properties, dict) and 0 < len(properties) <= MOST_FIELDS:
        needed = top.get("required")
        required = set(needed) if isinstance(needed, list) else set()
        return [
            _field(name, one, schema, required=name in required) for name, one in properties.items()
        ]
    return [_field("", top, schema, required=True)]


def _field(name: str, part: object, root: Mapping[str, Any], *, required: bool) -> Field:
    found = _resolved(part, root)
    kind, choices = _kind(found)
    label = _text(found, "title") or name or "Your answer"
    least, most = _limits(found, kind)
    hint = _text(found, "description")
    return Field(name, kind, label, hint, required, choices, least=least, most=most)


def _limits(part: Mapping[str, Any], kind: Kind) -> tuple[float | None, float | None]:
    """Return the smallest and the largest number of an input; an exclusive limit is left out."""
    if kind == "integer":
        return _number(part, "minimum", math.ceil), _number(part, "maximum", math.floor)
    if kind == "number":
        return _number(part, "minimum", float), _number(part, "maximum", float)
    return None, None


def _number(part: Mapping[str, Any], name: str, rounded: Callable[[float], float]) -> float | None:
    found = part.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    # Also false for what is no number: such limits are the schema's to check, not the browser's.
    return rounded(found) if abs(found) <= 2**53 else None


def _text(part: Mapping[str, Any], name: str) -> str:
    found = part.get(name)
    return found if isinstance(found, str) else ""


def _kind(part: Mapping[str, Any]) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    values = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(values, list) and 0 < len(values) <= _MOST_CHOICES:
        return "choice", tuple(
            (_json(one), one if isinstance(one, str) else _json(one)) for one in values
        )
    match part.get("type"):
        case "boolean":
            return "choice", (("true", "yes"), ("false", "no"))
        case "integer":
            return "integer", ()
        case "number":
            return "number", ()
        case "string":
            long = part.get("maxLength")
            return ("long" if isinstance(long, int) and long > 200 else "text"), ()
    return "json", ()


def _resolved(part: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part of a schema with its local reference followed, and without ``or null``."""
    found = part if isinstance(part, dict) else {}
    for _ in range(_MOST_REFS):
        kinds = found.get("anyOf")
        if isinstance(kinds, list):
            rest = [one for one in kinds if one != {"type": "null"}]
            if len(rest) != 1 or not isinstance(rest[0], dict):
                return found
            found = rest[0]
        elif isinstance(found.get("$ref"), str):
            target: Any = root
            for step in found["$ref"].removeprefix("#/").split("/"):
                target = target.get(step, {}) if isinstance(target, dict) else {}
            found = target if isinstance(target, dict) else {}
        else:
            break
    return found


def value_of(schema: Mapping[str, Any], form: Mapping[str, str]) -> Any:
    """Return the value of a filled form. Raises ``InvalidInputError`` with the path of the problem.

    >>> value_of({"properties": {"n": {"type": "integer"}}}, {"f.n": "7"})
    {'n': 7}
    """
    fields = fields_of(schema)
    if not fields[0].name:
        return _value(fields[0], form.get(PREFIX, ""))
    given = {one.name: (one, form.get(one.input, "")) for one in fields}
    return {
        name: _value(one, text)
        for name, (one, text) in given.items()
        # An input that was left empty is left out, unless an empty text is all it can be.
        if text or (one.required and one.kind in ("text", "long"))
    }


def _value(field: Field, text: str) -> Any:
    try:
        match field.kind:
            case "text" | "long":
                return text
            case "integer":
                return int(text)
            case "number":
                return int(text) if text.lstrip("+-").isdigit() else float(text)
            case "choice" | "json":
                return decode_json(text)
    except (ValueError, CodecError, RecursionError):
        kind = {"integer": "a whole number", "number": "a number"}.get(field.kind, "JSON")
        raise InvalidInputError(_path(field.name), f"must be {kind}") from None


def _path(name: str) -> str:
    return spell_path(("message", name)) if name else "message"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
