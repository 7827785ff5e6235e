"""The promises of ``OperationLedger``, and those of ``list`` about its filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage, ContentBlock, DataBlock, TextBlock
from holdfast.values.errors import InvalidInputError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _submit(
    store: TaskLedger, text: str = "hello", agent: str = "writer", **more: Any
) -> Any:
    return await store.submit(agent, ChatMessage.user(text), **more)


async def _ended(store: TaskLedger, *, to: str = "failed", **more: Any) -> Any:
    task = await _submit(store, **more)
    [claimed] = await store.claim("w1", agents=[task.agent], limit=1)
    return await store.transition(claimed.lease, to)


async def _ids(store: TaskLedger, **where: Any) -> list[str]:
    return [task.id for task in (await store.list(**where)).tasks]


async def test_list_filters_by_a_time_before_the_last_change_of_state_exclusively(
    store: TaskLedger, harness: Harness
) -> None:
    first = await _submit(store)
    await harness.elapse(1)
    second = await _submit(store)
    assert await _ids(store, updated_before=second.updated_at) == [first.id]
    assert await _ids(store, updated_before=second.updated_at + timedelta(seconds=1)) == [
        *(second.id, first.id),
    ]
    assert await _ids(store, updated_before=first.updated_at) == []


async def test_list_filters_by_the_beginning_of_an_id(store: TaskLedger) -> None:
    tasks = [await _submit(store) for _ in range(3)]
    for task in tasks:
        assert await _ids(store, id_prefix=task.id) == [task.id]
        assert task.id in await _ids(store, id_prefix=task.id[:8])
    assert await _ids(store, id_prefix="%") == []


async def test_list_filters_by_the_worker_that_holds_a_task(store: TaskLedger) -> None:
    for _ in range(2):
        await _submit(store)
    [one] = await store.claim("w1", limit=1)
    [other] = await store.claim("w2", limit=1)
    assert await _ids(store, worker="w1") == [one.task.id]
    assert await _ids(store, worker="w2") == [other.task.id]
    await store.transition(one.lease, "completed")
    assert await _ids(store, worker="w1") == []


async def test_list_filters_by_a_part_of_the_first_message_in_any_case_of_ascii_letters(
    store: TaskLedger,
) -> None:
    tides = await _submit(store, 'The "Tides"\nof Brest\\ \x00\x01 É 100%')
    blocks: list[ContentBlock] = [DataBlock({"text": "hidden"}), TextBlock("a harbour")]
    blocks.append(TextBlock("and a boat"))
    boat = await store.submit("writer", ChatMessage.user(blocks))
    for text in ("tides", "TIDES", '"Tides"\nof', "brest\\", "\x00\x01", "É", "100%"):
        assert await _ids(store, text=text) == [tides.id]
    for text in ("harbour", "AND A"):
        assert await _ids(store, text=text) == [boat.id]
    # Neither the names in a stored message, nor other blocks, nor a pattern.
    for text in ("role", "content", "hidden", "é", "t_des", "\x01\x00"):
        assert await _ids(store, text=text) == []
    [claimed] = await store.claim("w1", limit=1)
    await store.append_message(claimed.lease, ChatMessage.assistant("later"))
    assert await _ids(store, text="later") == []


async def test_list_gives_the_oldest_first_on_request(store: TaskLedger, harness: Harness) -> None:
    tasks = []
    for _ in range(5):
        tasks.append((await _submit(store)).id)
        await harness.elapse(1)
    assert await _ids(store, order="oldest") == tasks
    for max_bytes in (None, 10_000):
        page = await store.list(order="oldest", limit=2, count=True, max_bytes=max_bytes)
        assert page.total == 5
        found = [task.id for task in page.tasks]
        while page.next_cursor:
            page = await store.list(
                order="oldest", limit=2, cursor=page.next_cursor, max_bytes=max_bytes
            )
            found += [task.id for task in page.tasks]
        assert found == tasks


async def test_list_gives_the_first_message_of_each_task_on_request(store: TaskLedger) -> None:
    first = await _submit(store, "one")
    [claimed] = await store.claim("w1")
    await store.append_message(claimed.lease, ChatMessage.assistant("working on it"))
    await _submit(store, "two")
    for order in ("newest", "oldest"):
        for max_bytes in (None, 10_000):
            page = await store.list(first_message=True, order=order, max_bytes=max_bytes)
            said = {task.id: task.first_message for task in page.tasks}
            assert sorted(one.text for one in said.values() if one) == ["one", "two"]
            one = said[first.id]
            assert one is not None
            assert one.seq == 2
    [task, _] = (await store.list()).tasks
    assert task.first_message is None
    assert task.messages == []


async def test_first_messages_count_towards_the_max_bytes_of_a_page(store: TaskLedger) -> None:
    for _ in range(3):
        await _submit(store, "x" * 1000)
    assert len((await store.list(max_bytes=1500)).tasks) == 3
    page = await store.list(first_message=True, max_bytes=1500)
    assert len(page.tasks) == 1
    assert page.next_cursor is not None


@pytest.mark.parametrize(
    "wrong",
    [
        *({"order": "random"}, {"text": ""}, {"text": "x" * 1001}, {"text": 3}, {"worker": ""}),
        *({"id_prefix": ""}, {"updated_before": "now"}),
    ],
    ids="".join,
)
async def test_a_filter_or_an_order_that_is_none_is_refused(
    store: TaskLedger, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await store.list(**wrong)
    assert caught.value.field in wrong


async def test_counts_gives_the_number_of_tasks_by_state(store: TaskLedger) -> None:
    assert (await store.counts()).counts == {}
    await _ended(store)
    for _ in range(2):
        await _submit(store)
    found = await store.counts()
    assert found.counts == {"failed": 1, "submitted": 2}
    assert (found.total, found.capped) == (3, False)


async def test_counts_gives_the_number_of_tasks_by_agent(store: TaskLedger) -> None:
    for agent in ("writer", "team/reader", "writer"):
        await _submit(store, agent=agent)
    assert (await store.counts("agent")).counts == {"team/reader": 1, "writer": 2}
    wrong: Any = "owner"
    with pytest.raises(InvalidInputError, match="by"):
        await store.counts(wrong)


async def test_counts_takes_the_filters_of_list(store: TaskLedger) -> None:
    await _submit(store, "tides")
    await _submit(store, "boats", agent="reader", owner="ana", session_id="c1")
    assert (await store.counts(agent="reader")).total == 1
    assert (await store.counts(owner="ana")).total == 1
    assert (await store.counts(text="TIDES")).total == 1
    assert (await store.counts(session_id="c1", states=["failed"])).total == 0


async def test_counts_stops_at_its_limit_and_says_so(store: TaskLedger) -> None:
    for _ in range(3):
        await _submit(store)
    found = await store.counts(limit=2)
    assert (found.total, found.capped) == (2, True)
    assert (await store.counts(limit=3)).capped is False
    none = await store.counts(limit=0)
    assert (none.counts, none.capped) == ({}, True)


@pytest.mark.parametrize("limit", [10_000_001, 2**31, 2**63 - 1])
async def test_counts_of_more_than_ten_million_tasks_is_refused(
    store: TaskLedger, limit: int
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await store.counts(limit=limit)
    assert refused.value.field == "limit"
    assert (await store.counts(limit=10_000_000)).counts == {}


async def test_workers_gives_the_tasks_that_each_worker_holds_and_its_last_heartbeat(
    store: TaskLedger, harness: Harness
) -> None:
    await harness.hold_clock()
    tasks = [await _submit(store) for _ in range(3)]
    first = await store.claim("w2", limit=2, lease_seconds=30)
    [other] = await store.claim("w1", limit=1, lease_seconds=60)
    await harness.elapse(10)
    beat = await store.heartbeat(first[0].lease, lease_seconds=30)
    [w1, w2] = await store.workers()
    assert (w1.name, w1.task_ids) == ("w1", [other.task.id])
    assert (w2.name, w2.task_ids) == ("w2", sorted(one.task.id for one in first))
    assert w2.last_heartbeat_at == beat.expires_at - timedelta(seconds=30)
    assert w2.lease_expires_at == first[1].lease.expires_at
    assert w1.last_heartbeat_at == tasks[0].created_at
    assert await store.workers(owner="ana") == []


async def test_a_worker_without_tasks_is_not_among_the_workers(store: TaskLedger) -> None:
    await _ended(store)
    assert await store.workers() == []


async def test_cancel_many_cancels_the_tasks_that_match_and_no_others(store: TaskLedger) -> None:
    mine = sorted([(await _submit(store, agent="writer")).id for _ in range(3)])
    other = await _submit(store, agent="reader")
    done = await store.cancel_many(agent="writer", note="no longer needed")
    assert (done.task_ids, done.matched, done.more, done.dry_run) == (mine, 3, False, False)
    for task_id in mine:
        task = await store.get(task_id)
        assert task is not None
        assert (task.state, task.note) == (TaskState.CANCELED, "no longer needed")
    assert await _ids(store, states=["submitted"]) == [other.id]
    assert (await store.cancel_many(agent="writer")).task_ids == []


async def test_cancel_many_of_a_running_task_is_a_request_to_its_worker(store: TaskLedger) -> None:
    await _submit(store)
    [claimed] = await store.claim("w1")
    done = await store.cancel_many(worker="w1")
    assert done.task_ids == [claimed.task.id]
    assert (await store.heartbeat(claimed.lease)).cancel_requested


async def test_pause_many_pauses_the_tasks_that_match_and_no_others(store: TaskLedger) -> None:
    queued = await _submit(store, "tides")
    other = await _submit(store, "boats")
    done = await store.pause_many(text="tides", note="the model is down")
    assert done.task_ids == [queued.id]
    assert await _ids(store, states=["paused"]) == [queued.id]
    assert await _ids(store, states=["submitted"]) == [other.id]


async def test_a_dry_run_changes_nothing_and_returns_what_would_be_done(
    store: TaskLedger, harness: Harness
) -> None:
    live = sorted([(await _submit(store)).id for _ in range(3)])
    ended = await _ended(store, agent="reader")
    before = await harness.raw(CONTRACT)
    for call in (store.cancel_many, store.pause_many):
        found = await call(states=list(TaskState), dry_run=True, limit=2)
        assert (found.task_ids, found.more, found.dry_run) == (live[:2], True, True)
    found = await store.retry_many(states=list(TaskState), dry_run=True)
    assert (found.task_ids, found.new_task_ids) == ([ended.id], ())
    assert await harness.raw(CONTRACT) == before


async def test_an_operation_on_many_tasks_stops_at_its_limit_and_says_so(
    store: TaskLedger,
) -> None:
    for _ in range(3):
        await _submit(store)
    first = await store.cancel_many(agent="writer", limit=2)
    assert (first.matched, first.more) == (2, True)
    second = await store.cancel_many(agent="writer", limit=2)
    assert (second.matched, second.more) == (1, False)
    assert (await store.cancel_many(agent="writer", limit=0)).task_ids == []
    with pytest.raises(InvalidInputError, match="limit"):
        await store.cancel_many(agent="writer", limit=10_001)


async def test_an_operation_on_many_tasks_leaves_out_those_it_cannot_be_done_to(
    store: TaskLedger,
) -> None:
    ended = await _ended(store)
    live = await _submit(store)
    await store.adopt("t1", agent="writer")
    assert (await store.retry_many(agent="writer")).task_ids == [ended.id]
    assert ended.id not in (await store.pause_many(agent="writer")).task_ids
    canceled = (await store.cancel_many(agent="writer")).task_ids
    assert {"t1", live.id} < set(canceled)
    assert ended.id not in canceled


async def test_retry_many_submits_each_task_that_matches_again_once(store: TaskLedger) -> None:
    old = [
        await _ended(store, text=text, owner="ana", metadata={"n": text}, max_attempts=2)
        for text in ("one", "two")
    ]
    done = await store.retry_many(states=["failed"])
    assert done.task_ids == sorted(task.id for task in old)
    assert len(done.new_task_ids) == 2
    for before, made in zip(done.task_ids, done.new_task_ids, strict=True):
        task, failed = await store.get(made), await store.get(before)
        assert task is not None
        assert failed is not None
        assert (task.retry_of, task.state, failed.state) == (before, "submitted", "failed")
        assert (task.owner, task.metadata, task.max_attempts, task.session_id) == (
            *("ana", failed.metadata, 2, failed.session_id),
        )
        assert [one.text for one in task.messages] == [failed.messages[0].text]
        assert task.messages[0].id != failed.messages[0].id
    assert (await store.retry_many(states=["failed"])).task_ids == []
    assert (await store.counts()).counts == {"failed": 2, "submitted": 2}


async def test_an_operation_on_many_tasks_needs_a_filter(store: TaskLedger) -> None:
    task = await _submit(store)
    wheres: list[Any] = [{}, {"agent": None}]
    for call in (store.cancel_many, store.pause_many, store.retry_many):
        for where in wheres:
            with pytest.raises(InvalidInputError, match="filter"):
                await call(**where)
    assert await store.get(task.id, messages_limit=0) == task


async def test_another_owners_tasks_are_neither_counted_nor_changed(store: TaskLedger) -> None:
    mine = await _submit(store, owner="ana")
    other = await _ended(store, owner="bob", agent="reader")
    assert (await store.counts(owner="ana")).counts == {"submitted": 1}
    assert (await store.retry_many(owner="ana", states=["failed"])).task_ids == []
    assert (await store.cancel_many(owner="bob", states=["submitted"])).task_ids == []
    assert (await store.cancel_many(owner="", states=["submitted"])).task_ids == []
    assert await store.get(mine.id, messages_limit=0) == mine
    assert (await store.retry_many(owner="bob", states=["failed"])).task_ids == [other.id]


async def test_one_tenant_neither_counts_nor_changes_anothers_tasks(harness: Harness) -> None:
    acme, other = harness.store(CONTRACT, tenant="acme"), harness.store(CONTRACT, tenant="other")
    task = await _submit(acme)
    assert (await other.counts()).counts == {}
    assert (await other.cancel_many(agent="writer")).task_ids == []
    await acme.claim("w1")
    assert await other.workers() == []
    assert (await acme.get(task.id)).state is TaskState.WORKING


async def test_every_request_is_logged_with_the_name_of_who_made_it_if_one_is_given(
    store: TaskLedger,
) -> None:
    task = await _submit(store, by="ana")
    await store.pause(task.id, by="bob")
    await store.resume(task.id, by="zoë o'neil")
    [claimed] = await store.claim("w1")
    await store.pause(task.id, by="carl")
    await store.cancel(task.id)
    asked = [event for event in await store.events(task.id) if event.kind != "message"]
    assert [event.by_name for event in asked] == ["ana", "bob", "zoë o'neil", "", "carl", ""]
    await store.transition(claimed.lease, "canceled")
    waits = await _submit(store, by="dan")
    [claimed] = await store.claim("w1")
    await store.transition(claimed.lease, "input-required")
    await store.respond(waits.id, ChatMessage.user("this"), by="eve")
    said = [(event.kind, event.by_name) for event in await store.events(waits.id)]
    assert said[:2] == [("transition", "dan"), ("message", "dan")]
    assert said[-2:] == [("message", "eve"), ("transition", "eve")]
    done = await store.cancel_many(states=["submitted"], by="fay")
    assert done.task_ids == [waits.id]
    again = await store.retry(task.id, by="gus")
    made = [again.id, *(await store.retry_many(id_prefix=waits.id, by="hal")).new_task_ids]
    made.append((await store.fork(task.id, 2, by="ida")).id)
    names = [(await store.events(one))[0].by_name for one in made]
    assert names == ["gus", "hal", "ida"]
    assert (await store.events(waits.id))[-1].by_name == "fay"
    with pytest.raises(InvalidInputError, match="by"):
        await store.cancel(again.id, by="\n")


async def test_versions_gives_the_ids_and_versions_of_the_tasks_that_changed_last(
    store: Any,
) -> None:
    made = [
        await store.submit("writer", ChatMessage.user(f"{at}"), owner=owner)
        for at, owner in enumerate(("ana", "bob", "ana"))
    ]
    [claimed] = await store.claim("w1", agents=["writer"])
    await store.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    versions = await store.versions()
    assert list(versions) == [one.id for one in (await store.list()).tasks]
    assert versions[claimed.task.id] == claimed.task.version + 1
    assert list(await store.versions(limit=1)) == list(versions)[:1]
    assert await store.versions(limit=0) == {}
    assert set(await store.versions(owner="ana")) == {made[0].id, made[2].id}
