"""Promises of ``ClientLedger`` and ``LeaseLedger``: questions with options, and who answered."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import claimed, found, leased
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
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
