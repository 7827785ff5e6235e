"""The promises of ``ClientLedger``, ``ContextLedger`` and ``AuditLedger`` about ``max_bytes``."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.spi.tasks.stored import StoredMessage, text_bytes
from holdfast.testing.ledger_scenes import leased, submitted, texts
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import InvalidInputError

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = ["one " * 100, "twö " * 100, "three " * 100, "four " * 100]


def _size(*messages: ChatMessage) -> int:
    return sum(text_bytes(StoredMessage.of(one).payload) for one in messages)


async def _conversation(store: Any, **how: Any) -> tuple[str, list[ChatMessage]]:
    """A task at work with four messages of different sizes."""
    said = [ChatMessage.user(WORDS[0]), *map(ChatMessage.assistant, WORDS[1:])]
    lease = await leased(store, text=WORDS[0], **how)
    for one in said[1:]:
        await store.append_message(lease, one)
    return lease.task_id, said


async def test_max_bytes_gives_the_newest_messages_that_fit_beside_the_artifacts(
    store: Any,
) -> None:
    lease = await leased(store, text=WORDS[0])
    said = [ChatMessage.assistant(one) for one in WORDS[1:]]
    for one in said:
        await store.append_message(lease, one)
    await store.append_artifact(lease, "a1", [TextBlock("x" * 300)])
    whole = await store.get(lease.task_id)
    assert not whole.truncated
    room = await _artifact_bytes(store, lease.task_id)
    for count in (1, 2, 3):
        fits = _size(*said[-count:])
        task = await store.get(lease.task_id, max_bytes=room + fits)
        assert texts(task.messages) == texts(said[-count:])
        assert task.artifacts == whole.artifacts
        assert task.truncated
        less = await store.get(lease.task_id, max_bytes=room + fits - 1)
        assert len(less.messages) == max(count - 1, 1)
        alone = await store.get(lease.task_id, artifacts=False, max_bytes=fits)
        assert texts(alone.messages) == texts(said[-count:])
    assert await store.get(lease.task_id, max_bytes=1 << 40) == whole
    last = await store.get(lease.task_id, messages_limit=2, max_bytes=1 << 40)
    assert texts(last.messages) == texts(said[-2:])
    assert not last.truncated


async def _artifact_bytes(store: Any, task_id: str) -> int:
    """The least number of bytes with which the artifacts of a task come."""
    low, high = 0, 1 << 20
    while low < high:
        middle = (low + high) // 2
        if (await store.get(task_id, max_bytes=middle)).artifacts:
            high = middle
        else:
            low = middle + 1
    return low


async def test_the_newest_message_comes_whatever_max_bytes_is(store: Any) -> None:
    task_id, said = await _conversation(store)
    task = await store.get(task_id, max_bytes=0)
    assert texts(task.messages) == [said[-1].text]
    with pytest.raises(InvalidInputError, match="max_bytes"):
        await store.get(task_id, max_bytes=-1)
    with pytest.raises(InvalidInputError, match="max_bytes"):
        await store.list(max_bytes=1 << 63)


async def test_artifacts_that_do_not_fit_max_bytes_are_left_out_all_of_them(store: Any) -> None:
    lease = await leased(store)
    for name in ("a1", "a2"):
        await store.append_artifact(lease, name, [TextBlock("x" * 500)], metadata={"a": "b"})
    assert len((await store.get(lease.task_id, max_bytes=5_000)).artifacts) == 2
    task = await store.get(lease.task_id, max_bytes=700)
    assert task.artifacts == []
    assert task.truncated
    # What an artifact was before it began anew takes no room.
    await store.append_artifact(lease, "a2", [TextBlock("y")])
    task = await store.get(lease.task_id, max_bytes=700)
    assert [one.id for one in task.artifacts] == ["a1", "a2"]


async def test_a_task_of_which_something_was_left_out_says_so(store: Any) -> None:
    task_id, said = await _conversation(store)
    whole = _size(*said)
    assert not (await store.get(task_id, max_bytes=whole)).truncated
    assert (await store.get(task_id, max_bytes=whole - 1)).truncated
    assert not (await store.get(task_id, messages_limit=1, max_bytes=0)).truncated
    [listed] = (await store.list(messages_limit=None, max_bytes=whole - 1)).tasks
    assert listed.truncated


async def test_message_bytes_counts_what_all_messages_of_a_task_take(store: Any) -> None:
    task_id, said = await _conversation(store, owner="ana")
    assert await store.message_bytes(task_id, owner="ana") == _size(*said)
    assert await store.message_bytes(task_id, owner=None) == _size(*said)
    assert await store.message_bytes(task_id, owner="bob") == 0
    assert await store.message_bytes("nobody") == 0


async def test_a_page_ends_before_the_task_that_does_not_fit_max_bytes(store: Any) -> None:
    tasks = [await submitted(store, "x" * 1000, metadata={"note": "y" * 1000}) for _ in range(4)]
    newest = [one.id for one in reversed(tasks)]
    for most, count in ((1 << 40, 4), (2_100, 2), (3_500, 3), (1_500, 1)):
        page = await store.list(max_bytes=most, count=True)
        assert [one.id for one in page.tasks] == newest[:count]
        assert (page.next_cursor is None) == (count == 4)
        assert page.total == 4
        assert not any(one.truncated for one in page.tasks)
    page = await store.list(messages_limit=None, max_bytes=4_500)
    assert [one.id for one in page.tasks] == newest[:2]
    assert (await store.list(limit=0, max_bytes=1 << 40)).tasks == []
    assert (await store.list(limit=3, max_bytes=1 << 40)).next_cursor is not None


async def test_one_task_always_comes_however_large(store: Any) -> None:
    await leased(store, text="x")
    task_id, said = await _conversation(store)
    page = await store.list(messages_limit=None, artifacts=True, max_bytes=0)
    assert [one.id for one in page.tasks] == [task_id]
    assert texts(page.tasks[0].messages) == [said[-1].text]
    assert page.next_cursor is not None


async def test_pages_of_max_bytes_follow_each_other_without_a_gap_or_a_repeat(store: Any) -> None:
    made = [(await submitted(store, "x" * (at * 50))).id for at in range(20)]
    seen: list[str] = []
    cursor = None
    while True:
        page = await store.list(messages_limit=None, max_bytes=1_500, limit=7, cursor=cursor)
        assert page.tasks
        seen += [one.id for one in page.tasks]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == made[::-1]


async def test_max_bytes_gives_the_newest_messages_of_a_context_that_fit_and_always_the_newest(
    store: Any,
) -> None:
    _, said = await _conversation(store, session_id="c1")
    for count in (1, 2, 3, 4):
        fits = _size(*said[-count:])
        context = await store.get_context("c1", max_bytes=fits)
        assert texts(context.messages) == texts(said[-count:])
        assert context.truncated == (count < 4)
        less = await store.get_context("c1", max_bytes=fits - 1)
        assert len(less.messages) == max(count - 1, 1)
    context = await store.get_context("c1", messages_limit=2, max_bytes=1 << 40)
    assert (texts(context.messages), context.truncated) == (texts(said[-2:]), False)
    assert (await store.get_context("c1", messages_limit=0, max_bytes=5)).messages == []
    with pytest.raises(InvalidInputError, match="max_bytes"):
        await store.get_context("c1", max_bytes=-1)


async def test_max_bytes_gives_the_next_events_that_fit_and_always_one(store: Any) -> None:
    task_id, said = await _conversation(store)
    whole = await store.events(task_id)
    assert await store.events(task_id, max_bytes=1 << 40) == whole
    seen: list[Any] = []
    while page := await store.events(
        task_id, after_seq=seen[-1].seq if seen else 0, max_bytes=_size(said[0]), limit=100
    ):
        assert sum(isinstance(one.body, ChatMessage) for one in page) <= 1
        seen += page
    assert seen == whole
    with pytest.raises(InvalidInputError, match="max_bytes"):
        await store.events(task_id, max_bytes=-1)
