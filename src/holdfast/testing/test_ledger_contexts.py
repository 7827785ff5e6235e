"""The promises of ``ContextLedger``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.ledger_scenes import claimed, found, leased, submitted, texts
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import InvalidInputError, LeaseLostError
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import PushConfig

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _ids(store: Any, **how: Any) -> list[str]:
    return [context.id for context in (await store.list_contexts(**how)).contexts]


async def test_a_context_is_made_on_first_use(store: Any) -> None:
    assert await store.get_context("c1") is None
    first = await submitted(store, session_id="c1")
    await submitted(store, session_id="c1")
    context = await store.get_context("c1")
    assert (context.id, context.owner, context.tasks) == ("c1", "", 2)
    assert context.created_at == first.created_at


async def test_a_task_without_a_session_id_gets_a_context_of_its_own(store: Any) -> None:
    first, second = await submitted(store), await submitted(store)
    assert first.session_id != second.session_id
    assert sorted(await _ids(store)) == sorted([first.session_id, second.session_id])
    assert (await store.get_context(first.session_id)).tasks == 1


async def test_a_context_has_the_messages_of_all_its_tasks_in_the_order_they_were_stored(
    store: Any,
) -> None:
    lease = await leased(store, text="one", session_id="c1")
    await store.append_message(lease, ChatMessage.assistant("two"))
    await submitted(store, "three", session_id="c1")
    await submitted(store, "elsewhere", session_id="c2")
    await store.transition(lease, "input-required", message=ChatMessage.assistant("four?"))
    answer = ChatMessage.user("five")
    await store.respond(lease.task_id, answer)
    await store.respond(lease.task_id, answer)
    context = await store.get_context("c1")
    assert texts(context.messages) == ["one", "two", "three", "four?", "five"]
    assert context.messages[-1] == answer


async def test_20_concurrent_tasks_of_one_context_lose_no_message(store: Any) -> None:
    said = [f"message {at}" for at in range(20)]
    await asyncio.gather(*(submitted(store, text, session_id="c1") for text in said))
    context = await store.get_context("c1")
    assert sorted(texts(context.messages)) == sorted(said)
    assert context.tasks == 20
    assert len(await _ids(store)) == 1


async def test_the_last_messages_of_a_context_are_given_on_request(store: Any) -> None:
    for text in ("one", "two", "three"):
        await submitted(store, text, session_id="c1")
    for length, expected in ((0, []), (2, ["two", "three"]), (9, ["one", "two", "three"])):
        context = await store.get_context("c1", messages_limit=length)
        assert texts(context.messages) == expected


async def test_an_unknown_context_is_none(store: Any) -> None:
    assert await store.get_context("c1") is None
    assert await _ids(store) == []


async def test_a_follow_up_with_only_a_task_id_finds_its_context(store: Any) -> None:
    lease = await leased(store, text="one")
    await store.transition(lease, "completed", message=ChatMessage.assistant("two"))
    first = await found(store, lease.task_id)
    await submitted(store, "three", session_id=first.session_id)
    context = await store.get_context(first.session_id)
    assert texts(context.messages) == ["one", "two", "three"]


async def test_contexts_are_listed_newest_first_and_without_messages(
    harness: Harness, store: Any
) -> None:
    for name in ("b", "a", "c"):
        await submitted(store, session_id=name)
        await harness.elapse(1)
    await submitted(store, session_id="a")
    page = await store.list_contexts()
    assert [context.id for context in page.contexts] == ["c", "a", "b"]
    assert [context.tasks for context in page.contexts] == [1, 2, 1]
    assert all(context.messages == [] for context in page.contexts)


async def test_pages_of_contexts_follow_each_other_without_a_gap_or_a_repeat(
    harness: Harness, store: Any
) -> None:
    names = [f"c{at}" for at in range(5)]
    for at, name in enumerate(names):
        await submitted(store, session_id=name)
        if at % 2:
            await harness.elapse(1)
    await harness.elapse(1)
    seen, cursor = [], None
    for expected in (2, 2, 1):
        page = await store.list_contexts(limit=2, cursor=cursor)
        assert len(page.contexts) == expected
        seen += [context.id for context in page.contexts]
        cursor = page.next_cursor
        await submitted(store, "one more, between two pages")
    assert cursor is None
    assert seen == names[::-1]


async def test_a_limit_of_zero_is_an_empty_page_of_contexts(store: Any) -> None:
    await submitted(store)
    page = await store.list_contexts(limit=0)
    assert (page.contexts, page.next_cursor) == ([], None)


async def test_a_cursor_that_no_listing_of_contexts_gave_is_refused(store: Any) -> None:
    for _ in range(2):
        await submitted(store)
    of_tasks = (await store.list(limit=1)).next_cursor
    assert of_tasks
    for cursor in ("", "x", of_tasks):
        with pytest.raises(InvalidInputError, match="cursor"):
            await store.list_contexts(cursor=cursor)


async def test_the_same_session_id_of_another_owner_is_another_context(store: Any) -> None:
    anas = await submitted(store, "ana's", owner="ana", session_id="c1")
    bens = await submitted(store, "ben's", owner="ben", session_id="c1")
    assert texts((await store.get_context("c1", owner="ana")).messages) == ["ana's"]
    assert texts((await store.get_context("c1", owner="ben")).messages) == ["ben's"]
    assert await store.get_context("c1") is None
    assert await store.clear_context("c1", owner="ben") == 1
    assert await store.get(bens.id, owner="ben") is None
    assert (await store.get(anas.id, owner="ana")).session_id == "c1"


async def test_the_operator_lists_the_contexts_of_all_owners(store: Any) -> None:
    for owner in ("ana", "ben", ""):
        await submitted(store, owner=owner, session_id="c1")
    for every in ({}, {"owner": None}, {"owner": ANY_OWNER}):
        page = await store.list_contexts(**every)
        assert sorted(context.owner for context in page.contexts) == ["", "ana", "ben"]
    assert len(await _ids(store, owner="ana")) == len(await _ids(store, owner="")) == 1
    assert await _ids(store, owner="carl") == []


async def test_one_tenant_never_sees_anothers_contexts(harness: Harness, store: Any) -> None:
    await submitted(store, session_id="c1")
    other = harness.store(CONTRACT, tenant="other")
    assert await other.get_context("c1") is None
    assert await _ids(other, owner=None) == []
    assert await other.clear_context("c1") == 0
    assert await _ids(store) == ["c1"]


async def test_clear_context_removes_the_context_with_its_tasks_and_all_they_hold(
    store: Any,
) -> None:
    lease = await leased(store, session_id="c1")
    key = lease.task_id
    await store.append_artifact(lease, "a1", [TextBlock("x")])
    await store.record_step(lease, StepKey("s1"), 1)
    await store.append_feedback(key, "good")
    await store.upsert_push_config(key, PushConfig("p1", "https://example.org"))
    following = store.follow(key)
    for _ in range(5):
        await anext(following)
    waiting = asyncio.ensure_future(anext(following, None))
    await asyncio.sleep(0)
    queued = await submitted(store, session_id="c1")
    assert await store.clear_context("c1") == 2
    assert await waiting is None
    assert await store.get_context("c1") is None
    for task_id in (key, queued.id):
        assert await store.get(task_id, owner=None) is None
        assert await store.events(task_id, owner=None) == []
    assert (await store.list(owner=None)).tasks == []
    assert await store.artifacts(key, owner=None) == []
    assert await store.steps(key) == []
    assert await store.list_feedback(key, owner=None) == []
    assert await store.list_push_configs(key, owner=None) == []
    assert await store.claim("w1", limit=100) == []


async def test_clear_context_leaves_other_contexts_as_they_were(
    harness: Harness, store: Any
) -> None:
    kept = await submitted(store, session_id="c1", submit_key="k1")
    await submitted(store, session_id="c2", submit_key="k2")
    before = await found(store, kept)
    assert await store.clear_context("c2") == 1
    assert await found(store, kept) == before
    assert (await submitted(store, session_id="c1", submit_key="k1")).id == kept.id
    assert (await claimed(store)).task.id == kept.id
    await harness.elapse(1000)
    assert len(await store.recover_expired()) == 1
    await check_invariants(store, submitted=1)


async def test_clear_context_of_an_unknown_context_is_zero(store: Any) -> None:
    assert await store.clear_context("c1") == 0
    await submitted(store, session_id="c1")
    assert await store.clear_context("c1") == 1
    assert await store.clear_context("c1") == 0


async def test_after_clear_context_no_late_write_of_a_worker_takes_effect(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store, session_id="c1")
    await store.clear_context("c1")
    with pytest.raises(LeaseLostError):
        await store.append_message(lease, ChatMessage.assistant("late"))
    with pytest.raises(LeaseLostError):
        await store.transition(lease, "completed")
    await harness.elapse(1000)
    assert await store.recover_expired() == []
    assert await store.get_context("c1") is None


async def test_after_clear_context_a_submit_key_is_free_again(store: Any) -> None:
    first = await submitted(store, session_id="c1", submit_key="k1")
    await store.clear_context("c1")
    second = await submitted(store, "something else", session_id="c1", submit_key="k1")
    assert second.id != first.id


async def test_after_clear_context_nothing_more_is_delivered(store: Any) -> None:
    task = await submitted(
        store, session_id="c1", push=[PushConfig("p1", "https://example.org/hook")]
    )
    [entry] = await store.claim_outbox()
    await store.clear_context("c1")
    assert await store.claim_outbox() == []
    assert not await store.mark_delivered(entry)
    assert await store.list_outbox(task.id) == []


async def test_after_clear_context_the_session_id_begins_anew(store: Any) -> None:
    lease = await leased(store, text="old", session_id="c1")
    await store.clear_context("c1")
    new = await submitted(store, "new", session_id="c1")
    assert texts((await store.get_context("c1")).messages) == ["new"]
    one = await claimed(store)
    assert (one.task.id, one.lease.fence) == (new.id, 1)
    assert one.task.id != lease.task_id


async def test_a_context_is_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    await submitted(store, "one", session_id="c1")
    before = await store.get_context("c1")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.get_context("c1") == before
    await submitted(again, "two", session_id="c1")
    assert texts((await again.get_context("c1")).messages) == ["one", "two"]


async def test_a_context_that_a_store_returns_is_the_callers_to_mutate(store: Any) -> None:
    await submitted(store, "one", session_id="c1")
    for _ in range(2):
        context = await store.get_context("c1")
        assert texts(context.messages) == ["one"]
        context.messages[0].content.clear()
        context.messages.clear()
