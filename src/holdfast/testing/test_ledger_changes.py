"""Promises of ``ChangeLedger``: the feed of changes of state."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import claimed, submitted
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import Transition
from holdfast.values.tasks.new_task import NewTask

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _all(store: Any, after: str | None = None, **how: Any) -> list[Any]:
    """The feed after a cursor, page by page."""
    found = list[Any]()
    while True:
        page = await store.changes(after, **how)
        found += page.changes
        after = page.cursor
        if not page.more:
            return found


async def _complete(feed: Any, wanted: set[tuple[str, int]]) -> list[Any]:
    """The feed once it has all of these; transactions of others may hold it up."""
    async with asyncio.timeout(60):
        while True:
            found = await _all(feed)
            if wanted <= {(one.task_id, one.seq) for one in found}:
                return found
            await asyncio.sleep(0)


async def _stored(store: Any, *task_ids: str) -> set[tuple[str, int]]:
    """The changes of state in the timelines of tasks."""
    return {
        (task_id, one.seq)
        for task_id in task_ids
        for one in await store.events(task_id)
        if isinstance(one.body, Transition)
    }


async def test_changes_gives_each_change_of_state_once(store: Any) -> None:
    first = await submitted(store, owner="ana")
    work = await claimed(store)
    await store.append_message(work.lease, work.task.messages[0])
    await store.transition(work.lease, "completed")
    second = await submitted(store, by=None)
    await store.cancel(second.id, by="ben")
    found = await _complete(store, await _stored(store, first.id, second.id))
    assert [(one.from_state, one.to_state) for one in found if one.task_id == first.id] == [
        (None, TaskState.SUBMITTED),
        (TaskState.SUBMITTED, TaskState.WORKING),
        (TaskState.WORKING, TaskState.COMPLETED),
    ]
    assert len(found) == len({(one.task_id, one.seq) for one in found}) == 5
    ended = next(one for one in found if one.to_state is TaskState.CANCELED)
    assert (ended.task_id, ended.by_name, ended.owner) == (second.id, "ben", "")
    assert (str(ended.agent), ended.session_id) == ("writer", second.session_id)
    assert found[0].owner == "ana"


async def test_a_page_of_changes_goes_on_where_the_one_before_it_ended(store: Any) -> None:
    tasks = await store.submit_many(
        [NewTask("writer", ChatMessage.user(f"work {at}")) for at in range(7)]
    )
    whole = await _complete(store, await _stored(store, *(one.id for one in tasks)))
    for limit in (1, 2, 3, 7, 8):
        assert await _all(store, limit=limit) == whole
    end = (await store.changes()).cursor
    assert (await store.changes(end)).changes == []
    later = await submitted(store)
    await _complete(store, await _stored(store, later.id))
    assert [one.task_id for one in await _all(store, end)] == [later.id]


async def test_changes_of_concurrent_writers_are_all_in_the_feed(store: Any) -> None:
    done, seen, cursor = asyncio.Event(), list[Any](), None

    async def write(number: int) -> str:
        task = await submitted(store, f"work {number}", session_id=f"c{number}")
        await store.pause(task.id)
        await store.resume(task.id)
        return task.id

    async def read(after: str | None) -> str:
        while True:
            last, page = done.is_set(), await store.changes(after, limit=5)
            seen.extend(page.changes)
            after = page.cursor
            if last and not page.more:
                return after
            await asyncio.sleep(0)

    reading = asyncio.create_task(read(cursor))
    ids = await asyncio.gather(*(write(number) for number in range(20)))
    done.set()
    cursor = await reading
    wanted = await _stored(store, *ids)
    await _complete(store, wanted)
    seen.extend(await _all(store, cursor))
    assert len(wanted) == 60
    assert sorted((one.task_id, one.seq) for one in seen) == sorted(wanted)


async def test_changes_after_now_gives_only_what_comes_later(store: Any) -> None:
    old = await submitted(store)
    await _complete(store, await _stored(store, old.id))
    now = await store.changes("now")
    assert now.changes == []
    new = await submitted(store)
    await _complete(store, await _stored(store, new.id))
    assert [one.task_id for one in await _all(store, now.cursor)] == [new.id]


async def test_changes_of_an_owner_are_only_those_of_its_tasks(store: Any) -> None:
    tasks = [await submitted(store, owner=who) for who in ("ana", "ben", "ana", "")]
    await _complete(store, await _stored(store, *(one.id for one in tasks)))
    for owner, wanted in (("ana", [0, 2]), ("ben", [1]), ("", [3]), ("eve", [])):
        for limit in (1, 100):
            found = await _all(store, owner=owner, limit=limit)
            assert {one.task_id for one in found} == {tasks[at].id for at in wanted}


async def test_one_tenant_never_sees_the_changes_of_another(harness: Harness, store: Any) -> None:
    ours, theirs = store, harness.store(CONTRACT, tenant="other")
    task = await submitted(ours)
    found = await _complete(ours, await _stored(ours, task.id))
    assert [one.task_id for one in found] == [task.id]
    assert await _all(theirs) == []
    assert await _all(theirs, (await ours.changes(limit=0)).cursor) == []


async def test_a_page_of_changes_reads_at_most_its_limit_and_says_whether_there_is_more(
    store: Any,
) -> None:
    tasks = [await submitted(store, owner="ana") for _ in range(3)]
    await _complete(store, await _stored(store, *(one.id for one in tasks)))
    assert [len((await store.changes(limit=most)).changes) for most in (0, 2, 3, 4)] == [0, 2, 3, 3]
    assert [(await store.changes(limit=most)).more for most in (0, 2, 4)] == [False, True, False]
    page = await store.changes(owner="ben", limit=2)
    assert (page.changes, page.more) == ([], True)
    with pytest.raises(InvalidInputError, match="limit"):
        await store.changes(limit=1_001)


async def test_changes_of_a_deleted_task_are_not_in_the_feed(store: Any) -> None:
    gone, kept = await submitted(store), await submitted(store)
    await _complete(store, await _stored(store, gone.id, kept.id))
    await store.cancel(gone.id)
    await store.delete(gone.id)
    assert {one.task_id for one in await _all(store)} == {kept.id}


async def test_a_cursor_that_the_feed_did_not_return_is_refused(store: Any) -> None:
    await submitted(store)
    wrong: Any
    for wrong in ("", "Now", "nonsense", "W10=", "WzEsMiwzXQ==", 7, "é", "x" * 100_000, "\x00"):
        with pytest.raises(InvalidInputError, match="after"):
            await store.changes(wrong)
    for raw in ('[-1,"",0]', '[1,"",-1]', f'[{1 << 63},"",0]', '[1,"a\\n",0]', '[1,"a",0,1]'):
        with pytest.raises(InvalidInputError, match="after"):
            await store.changes(base64.urlsafe_b64encode(raw.encode()).decode())


async def test_changes_are_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    task = await submitted(store)
    before = await _complete(store, await _stored(store, task.id))
    await harness.reopen()
    assert await _all(harness.store(CONTRACT)) == before
