"""What sealed tasks and schedules store, who can read it, and what stays possible."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from holdfast import ANY_OWNER, ChatMessage, PushConfig, State, TaskState
from holdfast.content import TextBlock
from holdfast.contracts.schedule_runs import run_of
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.errors import ConflictError, InvalidInputError, NotSupportedError, SealedError
from holdfast.spi import StepKey
from holdfast.values.tasks.events import StepRecord
from holdfast.values.tasks.records import content_digest
from tests.sealing.conftest import Place

pytestmark = pytest.mark.asyncio(loop_scope="session")

CANARY = "zanzibarquokka"
PUSH = PushConfig("p1", f"https://{CANARY}.example.org", CANARY, {"scheme": "Bearer", "c": CANARY})


def said(text: str = CANARY, **more: Any) -> ChatMessage:
    return ChatMessage.user(text, **more)


async def fill(state: State, owner: str = "") -> tuple[str, str]:
    """Write the canary into every content of a task and a schedule; the ids of two tasks."""
    ledger = state.tasks
    task = await ledger.submit(
        "writer", said(), metadata={"of": CANARY}, owner=owner, submit_key="k1", push=[PUSH]
    )
    await ledger.send(task.id, {"go": CANARY}, topic="go", message_id="i1")
    [claimed] = await ledger.claim("w1", agents=["writer"])
    lease = claimed.lease
    await ledger.record_step(lease, StepKey("fetch"), {"page": CANARY}, digest=CANARY)
    await ledger.receive(lease, StepKey("go", kind="receive"), topic="go")
    await ledger.append_message(lease, said(f"said {CANARY}", id="m2"))
    await ledger.append_artifact(
        lease, "a1", [TextBlock(CANARY)], name=CANARY, metadata={"by": CANARY}
    )
    await ledger.append_artifact(lease, "a1", [TextBlock("end")], append=True, last_chunk=True)
    await ledger.submit_child(lease, StepKey("c", kind="child"), "child", said())
    await ledger.transition(
        lease,
        "input-required",
        message=said(f"which {CANARY}?", id="m3"),
        note=CANARY,
        ask=StepKey("q", kind="ask"),
        options=[CANARY, "other"],
    )
    await ledger.respond(task.id, said(id="m4"), owner=ANY_OWNER)
    [again] = await ledger.claim("w2", agents=["writer"])
    await ledger.transition(again.lease, "completed", message=said(id="m5"), result=[CANARY])
    await ledger.append_feedback(
        task.id, CANARY, metadata={"m": CANARY}, rating=5, feedback_id="f1"
    )
    failed = await ledger.submit("writer", said(), owner=owner)
    [last] = await ledger.claim("w2", agents=["writer"])
    await ledger.pause(failed.id, note=CANARY, owner=ANY_OWNER)
    await ledger.transition(last.lease, "failed", note=f"Error: {CANARY}")
    await state.schedules.create(
        "daily", "0 9 * * *", agent="writer", message=CANARY, metadata={"m": CANARY}, owner=owner
    )
    return task.id, failed.id


async def seen(state: State, task_id: str, failed_id: str, owner: str = "") -> dict[str, Any]:
    """What a state reads of it."""
    ledger = state.tasks
    task = await ledger.get(task_id, owner=ANY_OWNER)
    assert task is not None
    return {
        "task": task,
        "listed": (await ledger.list(first_message=True, owner=ANY_OWNER)).tasks,
        "events": await ledger.events(task_id, owner=ANY_OWNER),
        "steps": await ledger.steps(task_id),
        "replayed": [
            await ledger.replay(task_id, at, owner=ANY_OWNER) for at in range(1, task.version + 1)
        ],
        "context": await ledger.get_context(task.session_id, owner=owner),
        "feedback": await ledger.list_feedback(task_id, owner=ANY_OWNER),
        "push": await ledger.list_push_configs(task_id, owner=ANY_OWNER),
        "outbox": await ledger.list_outbox(task_id, owner=ANY_OWNER),
        "children": (await ledger.children(task_id, owner=ANY_OWNER)).tasks,
        "failed": await ledger.get(failed_id, owner=ANY_OWNER),
        "schedule": await state.schedules.get("daily", owner=owner),
    }


async def test_nothing_of_a_task_or_a_schedule_is_in_any_table(place: Place) -> None:
    state = await place.open()
    ids = await fill(state, "ana")
    found = await seen(state, *ids, "ana")
    assert found["task"].result == [CANARY]
    assert found["task"].metadata == {"of": CANARY}
    assert found["task"].artifacts[0].name == CANARY
    assert [one.result for one in found["steps"]][:2] == [
        {"page": CANARY},
        {"id": "i1", "message": {"go": CANARY}},
    ]
    assert found["steps"][0].digest == CANARY
    assert found["failed"].note == f"Error: {CANARY}"
    assert found["push"] == [PUSH]
    assert found["outbox"][0].config == PUSH
    assert found["feedback"][0].text == CANARY
    assert found["schedule"].message.text == CANARY
    assert found["children"][0].owner == "ana"
    last = found["replayed"][-1]
    assert (last.messages, last.artifacts) == (found["task"].messages, found["task"].artifacts)
    raw = await place.dump()
    assert "input-required" in raw
    assert CANARY not in raw
    assert CANARY.encode().hex() not in raw


async def test_the_same_tasks_are_in_the_tables_of_a_state_that_is_not_sealed(
    place: Place,
) -> None:
    state = await place.open(None)
    await fill(state)
    assert (await place.dump()).count(CANARY) >= 20


async def test_another_process_with_the_keys_reads_the_same(place: Place) -> None:
    first = await place.open()
    ids = await fill(first)
    found = await seen(first, *ids)
    assert await seen(await place.open(), *ids) == found
    for wrong, text in (
        (None, "HOLDFAST_SEAL"),
        (KeyRing({"k1": bytes(32)}, name="x"), "another key"),
    ):
        other = await place.open(wrong)
        for read in (other.tasks.get, other.tasks.events, other.tasks.list_push_configs):
            with pytest.raises(SealedError, match=text):
                await read(ids[0], owner=ANY_OWNER)
        with pytest.raises(SealedError, match=text):
            await other.tasks.steps(ids[0])
        with pytest.raises(SealedError, match=text):
            await other.schedules.get("daily")


async def test_what_was_begun_unsealed_goes_on_sealed(place: Place) -> None:
    plain, sealed = await place.open(None), await place.open()
    first = said("begun", id="m1")
    task = await plain.tasks.submit("writer", first, submit_key="k1", metadata={"a": 1})
    made = await plain.schedules.create("daily", "0 9 * * *", agent="writer", message="go")
    [claimed] = await plain.tasks.claim("w1", lease_seconds=60)
    await plain.tasks.record_step(claimed.lease, StepKey("fetch"), 1, digest="d1")
    await plain.tasks.append_message(claimed.lease, said("plain", id="m2"))
    # Retries of what is stored have no further effect; other content is a conflict.
    ledger, lease = sealed.tasks, claimed.lease
    same = await ledger.submit("writer", first, submit_key="k1", metadata={"a": 1})
    assert same.id == task.id
    with pytest.raises(ConflictError, match="k1"):
        await ledger.submit("writer", said("other"), submit_key="k1", metadata={"a": 1})
    assert (await ledger.record_step(lease, StepKey("fetch"), 2, digest="d1")).result == 1
    with pytest.raises(ConflictError, match="arguments"):
        await ledger.record_step(lease, StepKey("fetch"), 2, digest="d2")
    assert (await ledger.append_message(lease, said("plain", id="m2"))).text == "plain"
    with pytest.raises(ConflictError, match="m2"):
        await ledger.append_message(lease, said("other", id="m2"))
    again = await sealed.schedules.create("daily", "0 9 * * *", agent="writer", message="go")
    assert (again.message.text, again.version) == ("go", made.version)
    # What it asked unsealed is answered sealed.
    await plain.tasks.transition(
        lease, "input-required", message=said("q?"), ask=StepKey("q", kind="ask"), options=["yes"]
    )
    with pytest.raises(InvalidInputError, match="yes"):
        await ledger.respond(task.id, said("no"))
    await ledger.respond(task.id, said("yes", id="m3"))
    [claimed] = await ledger.claim("w2")
    assert [one.text for one in claimed.task.messages] == ["begun", "plain", "q?", "yes"]
    await ledger.record_step(claimed.lease, StepKey("next"), CANARY)
    done = await ledger.transition(claimed.lease, "completed", result=CANARY)
    assert (done.result, done.metadata) == (CANARY, {"a": 1})
    assert CANARY not in await place.dump()


async def test_retries_of_sealed_writes_have_no_further_effect(place: Place) -> None:
    state, other = await place.open(), await place.open()
    message = said(metadata={"a": 1, "b": 2})
    turned = replace(message, id="other", metadata={"b": 2, "a": 1})
    task = await state.tasks.submit("writer", message, submit_key="k1")
    assert (await other.tasks.submit("writer", turned, submit_key="k1")).id == task.id
    with pytest.raises(ConflictError):
        await other.tasks.submit("writer", said("x"), submit_key="k1")
    for one in (state, other):
        await one.tasks.send(task.id, [1], message_id="i1")
        await one.tasks.append_feedback(task.id, "good", feedback_id="f1")
    with pytest.raises(ConflictError):
        await other.tasks.send(task.id, [2], message_id="i1")
    with pytest.raises(ConflictError):
        await other.tasks.append_feedback(task.id, "bad", feedback_id="f1")
    [claimed] = await state.tasks.claim("w1")
    for one in (state, other):
        await one.tasks.record_step(claimed.lease, StepKey("s"), 1, digest="d")
        await one.tasks.append_message(claimed.lease, said(id="m2"))
    assert len(await state.tasks.steps(task.id)) == 1
    with pytest.raises(ConflictError):
        await other.tasks.record_step(claimed.lease, StepKey("s"), 1, digest="e")


async def test_copies_of_sealed_tasks_open(place: Place) -> None:
    state = await place.open()
    ledger = state.tasks
    done, failed = await fill(state, "ana")
    whole = await ledger.get(done, owner="ana")
    assert whole is not None
    await ledger.retry_many(states=[TaskState.COMPLETED], owner="ana")
    [many] = (await ledger.list(agent="writer", owner="ana", states=["submitted"])).tasks
    forked = await ledger.fork(done, whole.version, owner="ana")
    twice = await ledger.fork(forked.id, forked.version, owner="ana")
    other = await ledger.fork(done, 2, message=said("other"), owner="ana")
    resumed = await ledger.resume_failed(failed, owner="ana")
    retried = await ledger.retry(failed, owner="ana")
    # Another process: nothing is known of whose they are.
    fresh = (await place.open()).tasks
    for copy in (many, forked, twice, resumed, retried):
        found = await fresh.get(copy.id, owner=ANY_OWNER)
        assert found is not None
        assert found.messages[0].text == CANARY
        assert found.owner == "ana"
    changed = await fresh.get(other.id, owner=ANY_OWNER)
    assert changed is not None
    assert [one.text for one in changed.messages] == ["other"]
    last = await fresh.get(twice.id, owner=ANY_OWNER)
    assert last is not None
    assert [one.text for one in last.messages] == [one.text for one in whole.messages]
    assert [one.parts for one in last.artifacts] == [one.parts for one in whole.artifacts]
    steps = {str(one.key): one.result for one in await fresh.steps(twice.id)}
    known = {str(one.key): one.result for one in await fresh.steps(done)}
    assert steps.items() <= known.items()
    assert len(steps) >= 3


async def test_digests_of_appended_content_are_no_names_of_steps(place: Place) -> None:
    state, other = await place.open(), await place.open()
    task = await state.tasks.submit("writer", said(), owner="ana")
    [claimed] = await state.tasks.claim("w1")
    name = content_digest(["", CANARY])
    keys = [StepKey(name, at, kind="history") for at in (1, 2)]
    for ledger in (state.tasks, other.tasks):
        for key in keys:
            kept = await ledger.record_step(claimed.lease, key, [CANARY])
            assert (kept.key, kept.result) == (key, [CANARY])
    assert [one.key for one in await other.tasks.steps(task.id)] == keys
    forked = await other.tasks.fork(task.id, 5, owner="ana")
    assert [one.key for one in await other.tasks.steps(forked.id)] == keys
    bodies = [one.body for one in await other.tasks.events(task.id, owner="ana")]
    assert [one.key for one in bodies if isinstance(one, StepRecord)] == keys
    raw = await place.dump()
    assert name not in raw
    assert CANARY not in raw


async def test_text_is_not_searched_and_bytes_are_bounded_as_they_are_stored(
    place: Place,
) -> None:
    state = await place.open()
    task = await state.tasks.submit("writer", said("x" * 1000))
    for call in (state.tasks.list, state.tasks.counts, state.tasks.cancel_many):
        with pytest.raises(NotSupportedError, match="text"):
            await call(text="x")
    assert await state.tasks.message_bytes(task.id) > 1000
    [claimed] = await state.tasks.claim("w1")
    for at in range(3):
        await state.tasks.append_message(claimed.lease, said("y" * 1000, id=f"y{at}"))
    found = await state.tasks.get(task.id, max_bytes=3500)
    assert found is not None
    assert found.truncated
    assert [one.id for one in found.messages] == ["y1", "y2"]


async def test_nobody_can_store_what_looks_sealed(place: Place) -> None:
    forged, text = {"holdfast.sealed": "AQ=="}, "holdfast.sealed:AQ=="
    for state in (await place.open(), await place.open(None)):
        ledger = state.tasks
        with pytest.raises(InvalidInputError, match="reserved"):
            await ledger.submit("writer", said(text))
        with pytest.raises(InvalidInputError, match="reserved"):
            await ledger.submit("writer", said(), metadata=forged)
        with pytest.raises(InvalidInputError, match="reserved"):
            await state.schedules.create("daily", "0 9 * * *", agent="writer", message=text)
        task = await ledger.submit("writer", said("go"))
        with pytest.raises(InvalidInputError, match="reserved"):
            await ledger.send(task.id, forged)
        [claimed] = await ledger.claim("w1")
        with pytest.raises(InvalidInputError, match="reserved"):
            await ledger.record_step(claimed.lease, StepKey("s"), forged)
        with pytest.raises(InvalidInputError, match="reserved"):
            await ledger.append_artifact(claimed.lease, "a1", [TextBlock(text)])
        with pytest.raises(InvalidInputError, match="reserved"):
            await ledger.transition(
                claimed.lease,
                "input-required",
                message=said("q?"),
                ask=StepKey("q", kind="ask"),
                schema={"type": "object", "properties": {"holdfast.sealed": {"type": "string"}}},
            )
        # The text of an error is never refused: the task must be able to fail.
        note = f"ValueError: {text}"
        failed = await ledger.transition(claimed.lease, "failed", note=note)
        assert failed.note.startswith("ValueError: holdfast.sealed")
        found = await ledger.get(task.id)
        assert found is not None
        assert found.note == failed.note


async def test_a_schedule_makes_sealed_tasks(place: Place) -> None:
    state = await place.open()
    await state.schedules.create(
        "often", "* * * * *", agent="writer", message=CANARY, metadata={"m": CANARY}, owner="ana"
    )
    storage = cast("Any", state.schedules)._storage
    [due] = (await storage.due(10)).schedules
    late = due._replace(after=due.after - timedelta(minutes=5))
    [made] = await storage.run(run_of(late, due.after))
    task = await state.tasks.get(made.task.id, owner="ana")
    assert task is not None
    assert task.messages[0].text == CANARY
    assert task.metadata["m"] == CANARY
    assert CANARY not in await place.dump()
