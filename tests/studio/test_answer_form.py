"""A question with a schema is a form; what does not fit is said in place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import ChatMessage, State
from holdfast.studio.screens.answer_form import MOST_FIELDS, fields_of, value_of
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.events import StepKey
from tests.studio.visiting import Visitor

HARBOUR: dict[str, Any] = {
    "$ref": "#/$defs/Visit",
    "$defs": {
        "Visit": {
            "type": "object",
            "properties": {
                "harbour": {"enum": ["Brest", "Le Conquet"]},
                "nights": {"type": "integer", "minimum": 1},
                "draught": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "fuel": {"type": "boolean"},
                "note": {"type": "string"},
                "crew": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["harbour", "nights", "fuel"],
        }
    },
}
FILLED = {"harbour": '"Brest"', "nights": "2", "fuel": "true", "draught": "1.5", "crew": '["Ana"]'}


def _form(**given: str) -> dict[str, str]:
    return {f"f.{name}": text for name, text in given.items()}


def test_properties_are_inputs_of_their_kinds() -> None:
    kinds = {one.name: one.kind for one in fields_of(HARBOUR)}
    assert kinds == {
        "harbour": "choice",
        "nights": "integer",
        "draught": "number",
        "fuel": "choice",
        "note": "text",
        "crew": "json",
    }
    assert [one.name for one in fields_of(HARBOUR) if one.required] == ["harbour", "nights", "fuel"]


def test_a_filled_form_is_the_value_and_empty_inputs_are_left_out() -> None:
    assert value_of(HARBOUR, _form(**FILLED, note="")) == {
        "harbour": "Brest",
        "nights": 2,
        "fuel": True,
        "draught": 1.5,
        "crew": ["Ana"],
    }


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "boolean"}, "false", False),
        ({"type": "string"}, "7", "7"),
        ({"type": "integer"}, "7", 7),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"enum": [1, None]}, "null", None),
    ],
)
def test_any_other_schema_is_one_input(schema: dict[str, Any], text: str, value: object) -> None:
    assert value_of(schema, {"f.": text}) == value


@pytest.mark.parametrize("text", ["", "x", "1.5", "9" * 5000, "1_0x"])
def test_what_is_no_number_is_refused_by_its_path(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        value_of(HARBOUR, _form(**{**FILLED, "nights": text or "x"}))
    assert refused.value.field == "message.nights"


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"properties": []},
        {"properties": {str(at): {} for at in range(MOST_FIELDS + 1)}},
        {"anyOf": []},
        {"enum": []},
        {"title": 7, "description": [], "type": ["string", "null"]},
    ],
)
def test_a_strange_schema_is_answered_as_json(schema: dict[str, Any]) -> None:
    [field] = fields_of(schema)
    assert (field.name, field.kind) == ("", "json")


def test_numbers_have_the_limits_of_the_schema_where_a_browser_can_hold_them() -> None:
    whole = {"type": "integer", "minimum": 0.5, "maximum": 9.5}
    [one] = fields_of(whole)
    assert (one.least, one.most) == (1, 9)
    [one] = fields_of({"type": "number", "minimum": 0.5})
    assert (one.least, one.most) == (0.5, None)
    for odd in (True, "1", None, 10**400, float("inf")):
        [one] = fields_of({"type": "integer", "minimum": odd, "exclusiveMaximum": 3})
        assert (one.least, one.most) == (None, None)
    [one] = fields_of({"type": "string", "minimum": 1})
    assert one.least is None


async def _asked(state: State, schema: dict[str, Any], agent: str = "booker") -> str:
    task = await state.tasks.submit(agent, ChatMessage.user("Book a berth"))
    [claimed] = await state.tasks.claim("w1", agents=[agent])
    await state.tasks.transition(
        claimed.lease,
        "input-required",
        message=ChatMessage.assistant("Which harbour?", metadata={"schema": schema}),
        ask=StepKey("ask", kind="ask"),
        schema=schema,
    )
    return task.id


@pytest.mark.asyncio
async def test_a_form_is_answered_from_the_inbox_and_from_the_page_of_the_task(
    state: State,
) -> None:
    async with Visitor(state) as visitor:
        for agent, path in (("first", "/studio"), ("second", "/studio/tasks/{}")):
            task = await _asked(state, HARBOUR, agent)
            where = path.format(task)
            page = await visitor.page(where)
            assert 'name="f.harbour"' in page
            assert 'type="number" step="1" min="1"' in page
            assert "data-refused" not in page
            fields = {"task": task, "typed": "1", **_form(**FILLED)}
            assert (await visitor.send(where, "answer", **fields)).status_code == 303
            found = await state.tasks.get(task)
            assert found is not None
            assert str(found.state) == "submitted"
            assert json.loads(found.messages[-1].text)["nights"] == 2


@pytest.mark.asyncio
async def test_an_answer_that_does_not_fit_is_shown_again_with_the_reason(state: State) -> None:
    task = await _asked(state, HARBOUR)
    async with Visitor(state) as visitor:
        for where in ("/studio", f"/studio/tasks/{task}"):
            for nights, reason in (
                ("0", "less than the minimum"),
                ("two", "must be a whole number"),
            ):
                fields = _form(**{**FILLED, "nights": nights, "note": "near the <b>pump</b>"})
                sent = await visitor.send(where, "answer", task=task, typed="1", **fields)
                assert sent.status_code == 422
                assert reason in sent.text
                assert 'aria-invalid="true"' in sent.text
                assert "data-refused" in sent.text
                assert "near the &lt;b&gt;pump&lt;/b&gt;" in sent.text
        missing = await visitor.send("/studio", "answer", task=task, typed="1")
        assert missing.status_code == 422
        assert "harbour" in missing.text
        found = await state.tasks.get(task)
        assert found is not None
        assert str(found.state) == "input-required"
        assert len(found.messages) == 2


@pytest.mark.asyncio
async def test_a_form_of_a_question_that_was_answered_is_refused(state: State) -> None:
    task = await _asked(state, HARBOUR)
    await state.tasks.respond(task, ChatMessage.user('{"harbour":"Brest","nights":1,"fuel":false}'))
    async with Visitor(state) as visitor:
        sent = await visitor.send("/studio", "answer", task=task, typed="1", **_form(**FILLED))
        assert sent.status_code in {409, 422}
    found = await state.tasks.get(task)
    assert found is not None
    assert '"nights":1' in found.messages[-1].text


@pytest.mark.asyncio
async def test_an_owner_answers_no_form_of_another(state: State) -> None:
    task = await _asked(state, HARBOUR)
    async with Visitor.owner(state, "ana") as visitor:
        for where in ("/studio", f"/studio/tasks/{task}"):
            fields = {"task": task, "typed": "1", **_form(**FILLED)}
            sent = await visitor.send(where, "answer", **fields)
            assert sent.status_code in {404, 422}
            assert "Le Conquet" not in sent.text
