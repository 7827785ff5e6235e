"""The promises of ``ForkLedger``."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import (
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
)
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")
FETCH, WRITE, ASK = StepKey("fetch"), StepKey("write"), StepKey("q", kind="ask")


async def _worked_on(store: Any, harness: Harness, **more: Any) -> Lease:
    """A task with two attempts, steps, an answer, a remark and artifacts."""
    task = await store.submit("writer", ChatMessage.user("go"), max_attempts=9, **more)
    [claimed] = await store.claim("w1", lease_seconds=10)
    await store.append_artifact(claimed.lease, "a1", [TextBlock("lost")])
    await store.append_artifact(claimed.lease, "a2", [TextBlock("lost")], step=WRITE)
    await store.record_step(claimed.lease, FETCH, {"pages": 3}, digest="d1")
    await harness.elapse(11)
    await store.recover_expired()
    [claimed] = await store.claim("w1")
    lease: Lease = claimed.lease
    await store.append_artifact(lease, "a1", [TextBlock("one")])
    await store.append_artifact(lease, "a2", [TextBlock("two")], step=WRITE)
    await store.append_artifact(lease, "a2", [TextBlock("three")], append=True, step=WRITE)
    await store.record_step(lease, WRITE, None)
    await store.append_message(lease, ChatMessage.assistant("said"), step=StepKey("s", kind="say"))
    await store.transition(
        lease, "input-required", message=ChatMessage.assistant("which?"), ask=ASK
    )
    await store.respond(task.id, ChatMessage.user("this"), owner=None)
    [claimed] = await store.claim("w1")
    again: Lease = claimed.lease
    return again


def _said(task: Any) -> list[str]:
    return [one.text for one in task.messages]


def _made(task: Any) -> dict[str, list[str]]:
    return {one.id: [part.text for part in one.parts] for one in task.artifacts}


async def test_a_fork_has_the_messages_steps_answers_and_artifacts_that_were_stored_until_then(
    store: Any, harness: Harness
) -> None:
    lease = await _worked_on(store, harness, owner="ana", metadata={"a": 1})
    old = await store.get(lease.task_id)
    for event in await store.events(lease.task_id):
        if event.seq < 2:
            continue
        then = await store.replay(lease.task_id, event.seq)
        fork = await store.get((await store.fork(lease.task_id, event.seq)).id)
        assert (fork.state, fork.attempts, fork.fence) == ("submitted", 0, 0)
        assert (fork.retry_of, fork.owner, fork.metadata) == (old.id, "ana", {"a": 1})
        assert (fork.agent, fork.max_attempts) == (old.agent, 9)
        assert _said(fork) == _said(then)
        assert [one.id for one in fork.messages] == [one.id for one in then.messages]
        assert _made(fork) == _made(then)
    fork = await store.fork(lease.task_id, 999)
    keys = [step.key for step in await store.steps(fork.id)]
    assert keys == [FETCH, WRITE, StepKey("s", kind="say"), ASK]
    steps = zip(await store.steps(fork.id), await store.steps(lease.task_id), strict=True)
    assert all((one.result, one.digest) == (other.result, other.digest) for one, other in steps)
    await check_invariants(store)


async def test_a_fork_leaves_the_task_as_it_was(store: Any, harness: Harness) -> None:
    lease = await _worked_on(store, harness)
    before = await store.get(lease.task_id), await store.events(lease.task_id)
    await store.fork(lease.task_id, 5)
    assert (await store.get(lease.task_id), await store.events(lease.task_id)) == before
    await store.transition(lease, "completed")


async def test_a_fork_is_in_a_context_of_its_own(store: Any, harness: Harness) -> None:
    lease = await _worked_on(store, harness, session_id="c1")
    before = await store.get_context("c1")
    fork = await store.fork(lease.task_id, 999)
    assert fork.session_id != "c1"
    assert await store.get_context("c1") == before
    own = await store.get_context(fork.session_id)
    assert _said(own) == ["go", "said", "which?", "this"]
    [claimed] = await store.claim("w2")
    assert claimed.task.id == fork.id


async def test_a_fork_can_begin_with_another_message(store: Any, harness: Harness) -> None:
    lease = await _worked_on(store, harness)
    fork = await store.fork(lease.task_id, 999, message=ChatMessage.user("other", id="m9"))
    found = await store.get(fork.id)
    assert _said(found) == ["other", "said", "which?", "this"]
    assert found.messages[0].id == "m9"
    assert _said(await store.get(lease.task_id)) == ["go", "said", "which?", "this"]


async def test_a_fork_with_a_submit_key_is_made_once(store: Any, harness: Harness) -> None:
    lease = await _worked_on(store, harness)
    fork = await store.fork(lease.task_id, 5, submit_key="k1")
    assert await store.fork(lease.task_id, 5, submit_key="k1") == fork
    with pytest.raises(ConflictError):
        await store.fork(lease.task_id, 6, submit_key="k1")
    with pytest.raises(InvalidInputError, match="submit_key"):
        await store.fork(lease.task_id, 6, submit_key="holdfast.x")
    assert len((await store.list()).tasks) == 2
    assert len((await store.list_contexts()).contexts) == 2


async def test_a_fork_before_the_first_message_is_refused(store: Any) -> None:
    task = await store.submit("writer", ChatMessage.user("go"))
    for at_seq in (0, 1, -1, "2"):
        with pytest.raises(InvalidInputError, match="at_seq"):
            await store.fork(task.id, at_seq)
    assert _said(await store.get((await store.fork(task.id, 2)).id)) == ["go"]


async def test_resume_failed_goes_on_from_the_last_stored_step_in_the_same_context(
    store: Any, harness: Harness
) -> None:
    lease = await _worked_on(store, harness, session_id="c1")
    await store.transition(lease, "failed", note="no network")
    again = await store.resume_failed(lease.task_id, submit_key="k1")
    assert (again.retry_of, again.session_id, again.state) == (lease.task_id, "c1", "submitted")
    assert await store.resume_failed(lease.task_id, submit_key="k1") == again
    [claimed] = await store.claim("w2")
    assert claimed.task.id == again.id
    assert _made(await store.get(again.id)) == {"a1": ["one"], "a2": ["two", "three"]}
    assert len(await store.steps(again.id)) == 4
    await store.append_artifact(claimed.lease, "a1", [TextBlock("new")], append=True)
    assert _made(await store.get(again.id))["a1"] == ["new"]
    await store.transition(claimed.lease, "completed")
    assert (await store.get(lease.task_id)).state == "failed"
    await check_invariants(store)


async def test_resume_failed_adds_no_message_to_the_context(store: Any, harness: Harness) -> None:
    lease = await _worked_on(store, harness, session_id="c1")
    await store.transition(lease, "failed")
    before = await store.get_context("c1")
    again = await store.resume_failed(lease.task_id)
    context = await store.get_context("c1")
    assert _said(context) == _said(before)
    assert context.tasks == before.tasks + 1
    assert _said(await store.get(again.id)) == _said(before)


async def test_resume_failed_of_a_task_that_has_not_failed_is_refused(store: Any) -> None:
    task = await store.submit("writer", ChatMessage.user("go"))
    with pytest.raises(IllegalTransitionError, match="has not failed, it is submitted"):
        await store.resume_failed(task.id)
    await store.cancel(task.id)
    with pytest.raises(IllegalTransitionError):
        await store.resume_failed(task.id)
    assert len((await store.list()).tasks) == 1


async def test_a_step_that_was_taken_over_is_not_stored_again(store: Any, harness: Harness) -> None:
    lease = await _worked_on(store, harness)
    await store.transition(lease, "failed")
    await store.resume_failed(lease.task_id)
    [claimed] = await store.claim("w2")
    kept = await store.record_step(claimed.lease, FETCH, "other", digest="d1")
    assert kept.result == {"pages": 3}
    with pytest.raises(ConflictError):
        await store.record_step(claimed.lease, FETCH, "other", digest="d2")
    said = ChatMessage.assistant("again")
    found = await store.append_message(claimed.lease, said, step=StepKey("s", kind="say"))
    assert found.text == "said"


async def test_the_chunks_of_a_step_that_was_taken_over_are_restored_once(
    store: Any, harness: Harness
) -> None:
    lease = await _worked_on(store, harness)
    await store.transition(lease, "failed")
    again = await store.resume_failed(lease.task_id)
    [claimed] = await store.claim("w2")
    await store.restore_artifacts(claimed.lease, WRITE)
    await store.restore_artifacts(claimed.lease, WRITE)
    assert _made(await store.get(again.id))["a2"] == ["two", "three"]


async def test_a_blob_of_a_fork_is_held_elsewhere_until_the_fork_has_ended(store: Any) -> None:
    task = await store.submit("writer", ChatMessage.user("go"))
    [claimed] = await store.claim("w1")
    await store.add_cleanup(claimed.lease, "blob", "b1")
    await store.add_cleanup(claimed.lease, "run", "s1", agent="writer")
    assert await store.held_elsewhere(task.id, ["b1", "s1"]) == set()
    fork = await store.fork(task.id, 2)
    assert await store.held_elsewhere(task.id, ["b1", "b2", "s1"]) == {"b1"}
    await store.transition(claimed.lease, "completed")
    assert await store.held_elsewhere(fork.id, ["b1"]) == set()
    await store.cancel(fork.id)
    assert await store.held_elsewhere(task.id, ["b1"]) == set()
    assert [(one.kind, one.ref) for one in await store.list_cleanup(fork.id)] == [("blob", "b1")]


async def test_another_owners_task_can_be_neither_forked_nor_resumed(
    store: Any, harness: Harness
) -> None:
    lease = await _worked_on(store, harness, owner="ana")
    await store.transition(lease, "failed")
    for owner in ("bob", ""):
        with pytest.raises(NotFoundError):
            await store.fork(lease.task_id, 2, owner=owner)
        with pytest.raises(NotFoundError):
            await store.resume_failed(lease.task_id, owner=owner)
    other = harness.store(CONTRACT, tenant="other")
    with pytest.raises(NotFoundError):
        await other.fork(lease.task_id, 2)
    assert len((await store.list()).tasks) == 1
    assert (await store.resume_failed(lease.task_id, owner="ana")).owner == "ana"


async def test_a_task_that_somebody_else_runs_can_be_neither_forked_nor_resumed(
    store: Any,
) -> None:
    await store.adopt("t1", agent="writer", reports=[ChatMessage.user("hello")])
    with pytest.raises(ConflictError):
        await store.fork("t1", 2)
    with pytest.raises(ConflictError):
        await store.resume_failed("t1")
    assert len((await store.list_contexts()).contexts) == 1


async def test_a_fork_takes_over_the_children_that_were_completed_and_no_others(
    store: Any,
) -> None:
    task = await store.submit("writer", ChatMessage.user("go"), owner="ana")
    [parent] = await store.claim("w1", agents=["writer"])
    keys = [StepKey(name, kind="child") for name in ("done", "failed", "open")]
    for key in keys:
        await store.submit_child(parent.lease, key, "reader", ChatMessage.user(key.name))
    for claimed in await store.claim("w2", agents=["reader"], limit=3):
        said = claimed.task.messages[0].text
        if said == "done":
            await store.transition(claimed.lease, "completed", result=7)
        elif said == "failed":
            await store.transition(claimed.lease, "failed")
    last = (await store.get(task.id)).version
    fork = await store.fork(task.id, last, owner="ana")
    taken = [step.key for step in await store.steps(fork.id)]
    assert taken == [keys[0]]
    # It stays taken over, also by a fork of the fork, and the old task keeps its own.
    again = await store.fork(fork.id, fork.version)
    assert [step.key for step in await store.steps(again.id)] == [keys[0]]
    assert [step.key for step in await store.steps(task.id)] == keys
    assert [one.id for one in (await store.children(fork.id)).tasks] == []
    await check_invariants(store)
