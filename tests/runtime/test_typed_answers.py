"""Questions whose answers must fit a type or a JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field

import holdfast
from holdfast import App, ChatMessage, State, TaskContext, TaskState
from holdfast.content import DataBlock
from holdfast.errors import InvalidInputError
from tests.runtime.test_inbox import stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass
class Order:
    seats: int
    cabin: bool = False


class Passenger(BaseModel):
    name: str = Field(min_length=1)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("two seats", ": the text is not JSON"),
        ("{seats: 2}", ": the text is not JSON"),
        ("2", ""),
        ([DataBlock([2])], ""),
    ],
)
async def test_an_answer_that_is_no_object_is_refused_with_the_properties_of_the_object(
    state: State, wrong: Any, reason: str
) -> None:
    app = App("asker")

    @app.handler
    async def ask(task: TaskContext) -> int:
        order: Order = await task.ask("How many?", schema=Order)
        return order.seats

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    with pytest.raises(InvalidInputError) as refused:
        await state.tasks.respond(task.id, ChatMessage.user(wrong))
    assert str(refused.value) == (
        f"message: must be a JSON object with the properties seats, cabin (optional){reason}"
    )


async def test_definitions_of_a_draft_that_does_not_know_them_do_not_matter(state: State) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$defs": [{"type": "object", "properties": {"seats": {}}}],
        "$ref": "#/$defs/0",
    }
    app = App("asker")

    @app.handler
    async def ask(task: TaskContext) -> None:
        await task.ask("How many?", schema=schema)

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    with pytest.raises(InvalidInputError, match='not of type "object"'):
        await state.tasks.respond(task.id, ChatMessage.user("two"))


async def test_a_typed_question_returns_the_value_also_when_the_handler_runs_again(
    state: State,
) -> None:
    app, got = App("asker"), list[Any]()

    @app.handler(backoff_seconds=0.001)
    async def ask(task: TaskContext) -> list[Any]:
        order = await task.ask("How many?", schema=Order, name="order")
        who = await task.ask("Who?", schema=Passenger, name="who")
        day = await task.ask("Day?", schema={"type": "integer", "maximum": 31}, name="day")
        got.append((order, who, day))
        if len(got) == 1:
            raise ConnectionError("after the last answer")
        return [order.seats, order.cabin, who.name, day]

    task = await app.submit(state, "go", owner="ana")
    ana = state.for_owner("ana").tasks
    for wrong, field, right in (
        ('{"seats": "two"}', "message.seats", [DataBlock({"seats": 2})]),
        ('{"name": ""}', "message.name", '{"name": "Ana"}'),
        ("32", "message", "31"),
    ):
        await app.run_until_idle(state)
        question = (await stored(state, task)).status_message
        assert question is not None
        assert question.metadata["schema"]
        with pytest.raises(InvalidInputError) as refused:
            await ana.respond(task.id, ChatMessage.user(wrong))
        assert refused.value.field == field
        assert (await stored(state, task)).state is TaskState.INPUT_REQUIRED
        await ana.respond(task.id, ChatMessage.user(right), by="ana@example.org")
    while not (await stored(state, task)).terminal:
        await app.run_until_idle(state)
    assert (await stored(state, task)).result == [2, False, "Ana", 31]
    assert got == [(Order(2), Passenger(name="Ana"), 31)] * 2
    steps = await state.tasks.steps(task.id)
    assert [step.result["by"] for step in steps] == ["ana@example.org"] * 3


async def test_a_schema_that_is_none_fails_the_attempt_before_the_question(state: State) -> None:
    app = App("asker")

    class Opaque:
        kept: ClassVar[int] = 1

    @app.handler
    async def ask(task: TaskContext) -> None:
        wrong: Any
        for wrong in (Opaque, {"$ref": "http://127.0.0.1:9/x"}, "text", {"type": "int"}):
            with pytest.raises(InvalidInputError, match="schema"):
                await task.ask("?", schema=wrong, name="wrong")
        both: Any = {"options": ["a"], "schema": {}}
        with pytest.raises(InvalidInputError, match="cannot be combined"):
            await task.ask("?", name="both", **both)

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    assert (await stored(state, task)).state is TaskState.COMPLETED


async def test_an_answer_that_came_before_the_question_had_a_type_is_converted(
    state: State,
) -> None:
    typed = list[bool]()
    app = App("asker")

    @app.handler(backoff_seconds=0.001)
    async def ask(task: TaskContext) -> Any:
        if not typed:
            await task.ask("How many?")
            typed.append(True)
            raise ConnectionError("the code changes here")
        return (await task.ask("How many?", schema=Order)).seats

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    await state.tasks.respond(task.id, holdfast.ChatMessage.user('{"seats": 3}'))
    while not (await stored(state, task)).terminal:
        await app.run_until_idle(state)
    assert (await stored(state, task)).result == 3
