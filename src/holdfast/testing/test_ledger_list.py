"""The promises of ``ClientLedger``: listing tasks, and whose they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import (
    brought_to,
    claimed,
    found,
    submitted,
    texts,
    with_output,
)
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import ANY_OWNER

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _ids(store: Any, **how: Any) -> list[str]:
    return [task.id for task in (await store.list(**how)).tasks]


async def test_list_gives_messages_and_artifacts_only_on_request(store: Any) -> None:
    await with_output(store)
    [bare] = (await store.list()).tasks
    assert (bare.messages, bare.artifacts) == ([], [])
    [full] = (await store.list(messages_limit=None, artifacts=True)).tasks
    assert texts(full.messages) == ["one", "two", "three"]
    assert [artifact.parts for artifact in full.artifacts] == [[TextBlock("made")]]


async def test_list_is_newest_first_by_the_last_change_of_state(
    harness: Harness, store: Any
) -> None:
    tasks = []
    for _ in range(3):
        tasks.append((await submitted(store)).id)
        await harness.elapse(1)
    first, second, third = tasks
    assert await _ids(store) == [third, second, first]
    await store.pause(second)
    assert await _ids(store) == [second, third, first]
    assert (await found(store, second)).updated_at > (await found(store, third)).updated_at


async def test_pages_follow_each_other_without_a_gap_or_a_repeat(
    harness: Harness, store: Any
) -> None:
    tasks = []
    for at in range(7):
        tasks.append((await submitted(store)).id)
        if at % 2:
            await harness.elapse(1)
    seen, cursor = [], None
    for expected in (3, 3, 1):
        page = await store.list(limit=3, cursor=cursor)
        assert len(page.tasks) == expected
        seen += [task.id for task in page.tasks]
        cursor = page.next_cursor
        await submitted(store, "one more, between two pages")
    assert cursor is None
    assert seen == tasks[::-1]


async def test_list_filters_by_context(store: Any) -> None:
    one = await submitted(store, session_id="c1")
    await submitted(store, session_id="c2")
    assert await _ids(store, session_id="c1") == [one.id]
    assert await _ids(store, session_id="c3") == []


async def test_list_filters_by_state(store: Any) -> None:
    done = await brought_to(store, TaskState.COMPLETED)
    asking = await brought_to(store, TaskState.INPUT_REQUIRED)
    queued = await submitted(store)
    assert await _ids(store, states=["completed"]) == [done.id]
    assert await _ids(store, states=[TaskState.SUBMITTED, "input-required"]) == sorted(
        [asking.id, queued.id], reverse=True
    )
    with pytest.raises(InvalidInputError):
        await store.list(states=["finished"])


async def test_list_filters_by_agent(store: Any) -> None:
    one = await submitted(store, agent="writer/a1")
    await submitted(store, agent="writer/a2")
    assert await _ids(store, agent=AgentId("writer", "a1")) == [one.id]
    assert await _ids(store, agent="writer/a1") == [one.id]


async def test_list_filters_by_the_time_of_the_last_change_of_state_inclusively(
    harness: Harness, store: Any
) -> None:
    first = await submitted(store)
    await harness.elapse(10)
    second = await submitted(store)
    moment = second.updated_at
    assert await _ids(store, updated_after=moment) == [second.id]
    assert await _ids(store, updated_after=moment + timedelta(microseconds=1)) == []
    assert len(await _ids(store, updated_after=first.updated_at)) == 2


async def test_an_empty_list_of_states_is_an_empty_page(store: Any) -> None:
    await submitted(store)
    page = await store.list(states=[], count=True)
    assert (page.tasks, page.next_cursor, page.total) == ([], None, 0)


async def test_a_limit_of_zero_is_an_empty_page(store: Any) -> None:
    await submitted(store)
    page = await store.list(limit=0)
    assert (page.tasks, page.next_cursor) == ([], None)


async def test_the_total_is_counted_on_request_over_all_pages(store: Any) -> None:
    for _ in range(5):
        await submitted(store, session_id="c1")
    await submitted(store, session_id="c2")
    page = await store.list(limit=2, session_id="c1", count=True)
    assert page.total == 5
    assert (
        await store.list(limit=2, session_id="c1", count=True, cursor=page.next_cursor)
    ).total == 5
    assert (await store.list(limit=2)).total is None


async def test_a_cursor_that_no_listing_gave_is_refused(store: Any) -> None:
    await submitted(store)
    for cursor in ("", "x", "é", "bm90IGpzb24=", "W10="):
        with pytest.raises(InvalidInputError, match="cursor"):
            await store.list(cursor=cursor)


async def test_another_owners_task_is_not_found_on_any_path(store: Any) -> None:
    task = await submitted(store, owner="ana", submit_key="k1", session_id="c1")
    lease = (await claimed(store)).lease
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    before = await found(store, task)
    for owner in ("ben", ""):
        assert await store.get(task.id, owner=owner) is None
        for steer in (store.cancel, store.pause, store.resume, store.retry):
            with pytest.raises(NotFoundError):
                await steer(task.id, owner=owner)
        with pytest.raises(NotFoundError):
            await store.respond(task.id, ChatMessage.user("this"), owner=owner)
        with pytest.raises(NotFoundError):
            await submitted(store, owner=owner, retry_of=task.id)
    assert await found(store, task) == before
    await store.cancel(task.id, owner="ana")
    with pytest.raises(NotFoundError):
        await submitted(store, owner="ben", retry_of=task.id)


async def test_another_owners_task_is_not_in_a_list(store: Any) -> None:
    anas = await submitted(store, owner="ana", session_id="c1")
    bens = await submitted(store, owner="ben", session_id="c1")
    assert await _ids(store, owner="ana") == [anas.id]
    assert await _ids(store, owner="ben", session_id="c1") == [bens.id]
    page = await store.list(owner="carl", count=True)
    assert (page.tasks, page.total) == ([], 0)


async def test_the_operator_finds_the_tasks_of_every_owner(store: Any) -> None:
    tasks = [await submitted(store, owner=owner) for owner in ("ana", "ben", "")]
    assert sorted(await _ids(store, owner=None)) == sorted(task.id for task in tasks)
    assert (await store.get(tasks[0].id, owner=None)).owner == "ana"
    assert (await store.cancel(tasks[1].id, owner=None)).state is TaskState.CANCELED
    again = await store.retry(tasks[1].id, owner=None)
    assert again.owner == "ben"


async def test_with_an_empty_owner_only_tasks_without_an_owner_are_found(store: Any) -> None:
    anas, nobodys = await submitted(store, owner="ana"), await submitted(store)
    assert await store.get(anas.id, owner="") is None
    assert (await store.get(nobodys.id, owner="")).id == nobodys.id
    assert await _ids(store, owner="") == [nobodys.id]


async def test_the_operator_finds_a_task_that_was_submitted_for_an_owner_by_its_id_alone(
    store: Any,
) -> None:
    anas, bens = await submitted(store, owner="ana"), await submitted(store, owner="ben")
    for owner in ({}, {"owner": None}, {"owner": ANY_OWNER}):
        assert (await store.get(anas.id, **owner)).owner == "ana"
        assert (await store.events(bens.id, **owner))[0].task_id == bens.id
        assert {*await _ids(store, **owner)} == {anas.id, bens.id}
    assert (await store.cancel(anas.id)).owner == "ana"


async def test_a_task_cannot_be_submitted_for_any_owner(store: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await submitted(store, owner=ANY_OWNER)
    assert caught.value.field == "owner"
    for call in (store.get_context, store.clear_context, store.list_context_cleanup):
        with pytest.raises(InvalidInputError) as caught:
            await call("c1", owner=ANY_OWNER)
        assert caught.value.field == "owner"
    assert await _ids(store) == []
