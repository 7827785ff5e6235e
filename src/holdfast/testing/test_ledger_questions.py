"""Promises of ``ClientLedger`` and ``LeaseLedger``: questions whose answers are checked."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import claimed, found, leased
from holdfast.values.content import ChatMessage, DataBlock
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

WHO = StepKey("who", kind="ask")


async def _asked(store: Any, lease: Lease, options: list[str] | None = None) -> None:
    question = ChatMessage.assistant("Who will read it?")
    await store.transition(lease, "input-required", message=question, ask=WHO, options=options)


async def test_an_answer_that_is_none_of_the_options_is_refused_and_the_task_waits_on(
    store: Any,
) -> None:
    lease = await leased(store, owner="ana")
    await _asked(store, lease, ["a sailor", "a tourist"])
    before = await found(store, lease.task_id)
    for wrong in ("sailor", "A sailor", "", "a sailor, a tourist"):
        with pytest.raises(InvalidInputError, match="one of 'a sailor', 'a tourist'"):
            await store.respond(lease.task_id, ChatMessage.user(wrong), owner="ana")
    assert await found(store, lease.task_id) == before
    answer = ChatMessage.user(" a tourist ", id="m1")
    task = await store.respond(lease.task_id, answer, owner="ana")
    assert task.state is TaskState.SUBMITTED
    # A retry has no effect, and the next question has its own options.
    again = await store.respond(lease.task_id, answer, owner="ana")
    assert again.version == task.version
    second = (await claimed(store)).lease
    question = ChatMessage.assistant("Sure?")
    await store.transition(second, "input-required", message=question)
    done = await store.respond(lease.task_id, ChatMessage.user("whatever"), owner="ana")
    assert done.state is TaskState.SUBMITTED
    await check_invariants(store)


async def test_the_step_of_an_answer_says_who_gave_it(store: Any) -> None:
    lease = await leased(store)
    await _asked(store, lease, ["yes"])
    await store.respond(lease.task_id, ChatMessage.user("yes", id="m1"), by="ana@example.org")
    [step] = await store.steps(lease.task_id)
    assert step.result == {"message_id": "m1", "by": "ana@example.org"}
    wrong: Any = 7
    with pytest.raises(InvalidInputError, match="by"):
        await store.respond(lease.task_id, ChatMessage.user("yes"), by=wrong)


async def test_options_go_only_with_a_question(store: Any) -> None:
    lease = await leased(store)
    for state in ("completed", "submitted", "paused"):
        with pytest.raises(InvalidInputError, match="options"):
            await store.transition(lease, state, options=["a"])
    wrong: Any
    for wrong in ([], "ab", [""], [" a"], ["a", "a"], [1], ["a"] * 101):
        with pytest.raises(InvalidInputError, match="options"):
            await store.transition(lease, "input-required", options=wrong)
    assert (await found(store, lease.task_id)).state is TaskState.WORKING


ORDER = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "minimum": 1},
        "names": {"type": "array", "items": {"type": "string", "pattern": "^([a-z]+)+$"}},
    },
    "required": ["seats"],
    "additionalProperties": False,
}


async def _typed(store: Any, schema: dict[str, Any], owner: str = "ana") -> Lease:
    lease = await leased(store, owner=owner)
    question = ChatMessage.assistant("How many seats?")
    await store.transition(lease, "input-required", message=question, ask=WHO, schema=schema)
    return lease


async def test_an_answer_that_does_not_fit_the_schema_is_refused_by_its_path_and_the_task_waits_on(
    store: Any,
) -> None:
    lease = await _typed(store, ORDER)
    before = await found(store, lease.task_id)
    for wrong, field in (
        ("two", "message"),
        ("{}", "message"),
        ('{"seats": 0}', "message.seats"),
        ('{"seats": 1, "more": 2}', "message"),
        ('{"seats": 1, "names": ["ana", 7]}', "message.names[1]"),
        ([DataBlock({"seats": "2"})], "message.seats"),
        ([DataBlock({"seats": 2}), DataBlock({"seats": 2})], "message"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            await store.respond(lease.task_id, ChatMessage.user(wrong), owner="ana")
        assert refused.value.field == field
    with pytest.raises(NotFoundError):
        await store.respond(lease.task_id, ChatMessage.user('{"seats": 2}'), owner="ben")
    assert await found(store, lease.task_id) == before
    answer = ChatMessage.user([DataBlock({"seats": 2})], id="m1")
    task = await store.respond(lease.task_id, answer, owner="ana")
    assert task.state is TaskState.SUBMITTED
    again = await store.respond(lease.task_id, answer, owner="ana")
    assert again.version == task.version
    await check_invariants(store)


@pytest.mark.parametrize(
    ("schema", "said", "value"),
    [
        (ORDER, '{"seats": 2, "names": ["ana"]}', {"seats": 2, "names": ["ana"]}),
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "string"}, "7", "7"),
        ({"type": "string"}, "1" * 30, "1" * 30),
        ({"type": "string"}, "[" * 100_000, "[" * 100_000),
        ({"type": "boolean"}, "false", False),
        ({"type": "null"}, "null", None),
        ({"$defs": {"n": {"type": "number"}}, "$ref": "#/$defs/n"}, "0.5", 0.5),
    ],
)
async def test_the_value_of_an_answer_that_fits_the_schema_is_stored_with_its_step(
    store: Any, schema: dict[str, Any], said: str, value: Any
) -> None:
    lease = await _typed(store, schema)
    answer = ChatMessage.user(said, id="m1")
    await store.respond(lease.task_id, answer, owner="ana", by="ana@example.org")
    [step] = await store.steps(lease.task_id)
    assert step.result == {"message_id": "m1", "by": "ana@example.org", "value": value}


async def test_a_hostile_answer_to_a_question_with_a_schema_is_refused_in_time(store: Any) -> None:
    # By a matcher that backtracks, the first of these takes longer than the sun will last.
    lease = await _typed(store, ORDER)
    for hostile in (
        '{"seats": 1, "names": ["' + "a" * 100_000 + '!"]}',
        "[" * 100_000 + "]" * 100_000,
        '{"seats": ' + "9" * 100_000 + "}",
        '{"seats": 1, "' + "k" * 100_000 + '": 1}',
        '{"seats": NaN}',
    ):
        with pytest.raises(InvalidInputError) as refused:
            await store.respond(lease.task_id, ChatMessage.user(hostile), owner="ana")
        assert len(str(refused.value)) < 1_000
    assert (await found(store, lease.task_id)).state is TaskState.INPUT_REQUIRED


async def test_a_schema_goes_only_with_a_question_and_refers_to_nothing_outside(
    store: Any,
) -> None:
    lease = await leased(store)
    for state in ("completed", "submitted", "paused"):
        with pytest.raises(InvalidInputError, match="schema"):
            await store.transition(lease, state, schema={"type": "integer"})
    wrong: Any
    for wrong in (
        [],
        "integer",
        {"type": "int"},
        {"properties": {"a": {"minimum": "1"}}},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$schema": "https://example.org/mine", "type": "integer"},
        {"pattern": "(?=a)b"},
        {"enum": ["x" * 70_000]},
    ):
        with pytest.raises(InvalidInputError, match="schema"):
            await store.transition(lease, "input-required", schema=wrong)
    with pytest.raises(InvalidInputError, match="options"):
        await store.transition(lease, "input-required", schema={}, options=["a"])
    assert (await found(store, lease.task_id)).state is TaskState.WORKING
