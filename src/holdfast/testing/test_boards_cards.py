"""What every ``TaskStore`` promises about the cards on a board: states, retries, titles."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.boards import Boards, TaskStore
from holdfast.values.boards import Task, TaskList, TaskStatus
from holdfast.values.errors import IllegalTransitionError, InvalidInputError, VersionConflictError

CONTRACT = "boards"
pytestmark = pytest.mark.asyncio(loop_scope="session")

OPEN = [status for status in TaskStatus if not status.terminal]
TERMINAL = [TaskStatus.SUCCEEDED, TaskStatus.ABANDONED]


async def _board(store: TaskStore, *, max_retries: int = 3) -> tuple[str, str]:
    board = await store.create_task_list("c1", ["a", "other"], max_retries=max_retries)
    return board.id, board.tasks[0].id


async def _stored(store: TaskStore, board: str, card: str) -> Task:
    found = await store.get_task_list(board)
    assert isinstance(found, TaskList)
    return next(one for one in found.tasks if one.id == card)


async def test_update_status_sets_the_status_and_the_note(store: TaskStore) -> None:
    board, card = await _board(store)
    before = await store.get_task_list(board)
    moved = await store.update_status(board, card, TaskStatus.BLOCKED, "waits for a key")
    assert moved == Task(card, "a", TaskStatus.BLOCKED, 0, 0, "waits for a key")
    found = await store.get_task_list(board)
    assert before is not None
    assert found is not None
    assert found.tasks == [moved, before.tasks[1]]


async def test_update_status_accepts_the_enum_or_its_string(store: TaskStore) -> None:
    board, card = await _board(store)
    for status in TaskStatus:
        one = await store.create_task_list("c2", ["a"])
        as_enum = await store.update_status(one.id, one.tasks[0].id, status)
        as_text = await store.update_status(one.id, one.tasks[0].id, status.value)
        assert as_enum is not None
        assert as_enum == as_text
        assert as_enum.status is status
    moved = await store.update_status(board, card, "in_progress")
    assert moved is not None
    assert moved.status is TaskStatus.IN_PROGRESS
    assert (await _stored(store, board, card)).status is TaskStatus.IN_PROGRESS


@pytest.mark.parametrize("bad", ["done", "", "PLANNED", "planned ", None, 1])
async def test_an_unknown_status_is_refused(store: TaskStore, bad: Any) -> None:
    board, card = await _board(store)
    with pytest.raises(InvalidInputError) as caught:
        await store.update_status(board, card, bad, "note")
    assert caught.value.field == "status"
    assert not isinstance(bad, str) or f"not {bad!r}" in str(caught.value)
    assert await _stored(store, board, card) == Task(card, "a")


async def test_an_empty_note_keeps_the_old_note(store: TaskStore) -> None:
    board, card = await _board(store)
    await store.update_status(board, card, "blocked", "why")
    kept = await store.update_status(board, card, "in_progress")
    assert kept is not None
    assert kept.note == "why"
    changed = await store.update_status(board, card, "failed", "other")
    assert changed is not None
    assert changed.note == (await _stored(store, board, card)).note == "other"


@pytest.mark.parametrize("terminal", TERMINAL)
async def test_leaving_a_terminal_state_is_an_illegal_transition(
    store: TaskStore, terminal: TaskStatus
) -> None:
    board, card = await _board(store)
    done = await store.update_status(board, card, terminal, "done")
    for status in TaskStatus:
        if status is not terminal:
            with pytest.raises(IllegalTransitionError) as caught:
                await store.update_status(board, card, status, "again")
            assert (caught.value.from_state, caught.value.to_state) == (terminal, status)
    assert await _stored(store, board, card) == done


@pytest.mark.parametrize("terminal", TERMINAL)
async def test_a_terminal_state_may_be_set_again(store: TaskStore, terminal: TaskStatus) -> None:
    board, card = await _board(store)
    first = await store.update_status(board, card, terminal, "done")
    assert await store.update_status(board, card, terminal) == first
    assert await store.update_status(board, card, terminal, "really") == Task(
        card, "a", terminal, note="really"
    )


@pytest.mark.parametrize("status", [status for status in TaskStatus if status != "failed"])
async def test_a_failed_card_is_not_terminal(store: TaskStore, status: TaskStatus) -> None:
    board, card = await _board(store)
    await store.update_status(board, card, "failed")
    assert await store.update_status(board, card, status) == Task(card, "a", status)


async def test_update_status_of_an_unknown_card_is_none(store: TaskStore) -> None:
    board, card = await _board(store)
    assert await store.update_status(board, "nothing", "failed") is None
    assert await store.update_status("nothing", card, "failed") is None


async def test_increment_retry_counts_and_puts_the_card_in_progress(store: TaskStore) -> None:
    board, card = await _board(store, max_retries=9)
    for count, status in enumerate(OPEN, 1):
        await store.update_status(board, card, status)
        tried = await store.increment_retry(board, card)
        assert tried == Task(card, "a", TaskStatus.IN_PROGRESS, retry_count=count)
        assert await _stored(store, board, card) == tried


async def test_increment_retry_keeps_the_note(store: TaskStore) -> None:
    board, card = await _board(store)
    await store.update_status(board, card, "failed", "no answer")
    tried = await store.increment_retry(board, card)
    assert tried is not None
    assert tried.note == "no answer"


@pytest.mark.parametrize("status", list(TaskStatus))
async def test_at_the_maximum_increment_retry_returns_none_and_changes_nothing(
    store: TaskStore, status: TaskStatus
) -> None:
    board, card = await _board(store, max_retries=2)
    assert [await store.increment_retry(board, card) is None for _ in range(2)] == [False, False]
    before = await store.update_status(board, card, status)
    assert await store.increment_retry(board, card) is None
    assert await _stored(store, board, card) == before


async def test_a_maximum_of_zero_retries_allows_none(store: TaskStore) -> None:
    board, card = await _board(store, max_retries=0)
    assert await store.increment_retry(board, card) is None
    assert await _stored(store, board, card) == Task(card, "a")


@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", None])
async def test_a_negative_maximum_of_retries_is_refused(store: TaskStore, bad: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await store.create_task_list("c1", ["a"], max_retries=bad)
    assert caught.value.field == "max_retries"
    assert await store.get_by_conversation("c1") is None


@pytest.mark.parametrize("terminal", TERMINAL)
async def test_increment_retry_of_a_terminal_card_below_the_maximum_is_an_illegal_transition(
    store: TaskStore, terminal: TaskStatus
) -> None:
    board, card = await _board(store)
    done = await store.update_status(board, card, terminal)
    with pytest.raises(IllegalTransitionError) as caught:
        await store.increment_retry(board, card)
    assert (caught.value.from_state, caught.value.to_state) == (terminal, "in_progress")
    assert await _stored(store, board, card) == done


async def test_increment_retry_of_an_unknown_card_is_none(store: TaskStore) -> None:
    board, card = await _board(store)
    assert await store.increment_retry(board, "nothing") is None
    assert await store.increment_retry("nothing", card) is None


async def test_concurrent_callers_can_never_exceed_max_retries(store: TaskStore) -> None:
    board, card = await _board(store, max_retries=5)
    outcomes = await asyncio.gather(*(store.increment_retry(board, card) for _ in range(30)))
    counts = [tried.retry_count for tried in outcomes if tried is not None]
    assert sorted(counts) == [1, 2, 3, 4, 5]
    assert (await _stored(store, board, card)).retry_count == 5


@pytest.mark.parametrize("status", list(TaskStatus))
async def test_force_retry_resets_count_and_note_and_plans_a_card_again_whatever_its_status(
    store: TaskStore, status: TaskStatus
) -> None:
    board, card = await _board(store, max_retries=1)
    await store.increment_retry(board, card)
    await store.update_status(board, card, status, "note")
    revived = await store.force_retry(board, card)
    assert revived == Task(card, "a", TaskStatus.PLANNED, order=0, retry_count=0, note="")
    assert await _stored(store, board, card) == revived
    assert await store.increment_retry(board, card) is not None


async def test_force_retry_of_an_unknown_card_is_none(store: TaskStore) -> None:
    board, card = await _board(store)
    assert await store.force_retry(board, "nothing") is None
    assert await store.force_retry("nothing", card) is None


@pytest.mark.parametrize("status", list(TaskStatus))
async def test_update_task_title_renames_a_card_in_any_state(
    store: TaskStore, status: TaskStatus
) -> None:
    board, card = await _board(store)
    await store.update_status(board, card, status, "note")
    renamed = await store.update_task_title(board, card, "  b ")
    assert renamed == Task(card, "b", status, note="note")
    assert await _stored(store, board, card) == renamed


async def test_a_blank_new_title_is_refused(store: TaskStore) -> None:
    board, card = await _board(store)
    with pytest.raises(InvalidInputError) as caught:
        await store.update_task_title(board, card, " \n")
    assert caught.value.field == "title"
    assert await _stored(store, board, card) == Task(card, "a")


async def test_update_task_title_of_an_unknown_card_is_none(store: TaskStore) -> None:
    board, card = await _board(store)
    assert await store.update_task_title(board, "nothing", "b") is None
    assert await store.update_task_title("nothing", card, "b") is None


@pytest.mark.parametrize("status", list(TaskStatus))
async def test_update_task_note_replaces_or_clears_the_note_of_a_card_in_any_state(
    store: Boards, status: TaskStatus
) -> None:
    board, card = await _board(store)
    await store.update_status(board, card, status, "old")
    noted = await store.update_task_note(board, card, " new ")
    assert noted == Task(card, "a", status, note=" new ")
    assert await _stored(store, board, card) == noted
    assert await store.update_task_note(board, card, "") == Task(card, "a", status)
    assert await _stored(store, board, card) == Task(card, "a", status)


async def test_update_task_note_of_an_unknown_card_is_none(store: Boards) -> None:
    board, card = await _board(store)
    assert await store.update_task_note(board, "nothing", "b") is None
    assert await store.update_task_note("nothing", card, "b") is None


async def test_each_change_of_a_card_adds_one_to_its_version_and_sets_its_time(
    store: Boards,
) -> None:
    made = await store.create_task_list("c1", ["a"])
    [added] = await store.add_tasks(made.id, ["b"])
    key = (made.id, made.tasks[0].id)
    changed = [
        made.tasks[0],
        await store.update_status(*key, "blocked"),
        await store.update_status(*key, "blocked"),
        await store.update_task_title(*key, "c"),
        await store.update_task_note(*key, "why"),
        await store.increment_retry(*key),
        await store.force_retry(*key),
    ]
    assert [card and card.version for card in changed] == [1, 2, 3, 4, 5, 6, 7]
    times = [card.updated_at for card in changed if card and card.updated_at]
    assert len(times) == len(changed)
    assert times == sorted(times)
    assert added.version == 1
    stored = await store.get_task_list(made.id)
    assert stored is not None
    assert [(card.version, card.updated_at) for card in stored.tasks] == [
        (7, times[-1]),
        (1, added.updated_at),
    ]


async def test_a_change_that_expects_another_version_is_refused_and_changes_nothing(
    store: Boards,
) -> None:
    board, card = await _board(store)
    before = await store.update_status(board, card, "succeeded", "note")
    assert before is not None
    for change in (
        store.update_status(board, card, "blocked", expected_version=1),
        store.update_task_title(board, card, "b", expected_version=3),
        store.update_task_note(board, card, "b", expected_version=0),
    ):
        with pytest.raises(VersionConflictError) as caught:
            await change
        assert (caught.value.key, caught.value.actual) == (card, 2)
    stored = await _stored(store, board, card)
    assert (stored, stored.version) == (before, 2)
    with pytest.raises(IllegalTransitionError):
        await store.update_status(board, card, "blocked", expected_version=2)
    assert await store.update_task_title(board, card, "b", expected_version=2)
    with pytest.raises(InvalidInputError, match="expected_version"):
        await store.update_task_title(board, card, "b", expected_version=-1)


async def test_of_many_changes_that_expect_the_same_version_one_wins(store: Boards) -> None:
    board, card = await _board(store)
    results = await asyncio.gather(
        *(store.update_task_note(board, card, str(n), expected_version=1) for n in range(10)),
        return_exceptions=True,
    )
    [won] = [one for one in results if isinstance(one, Task)]
    assert sum(isinstance(one, VersionConflictError) for one in results) == 9
    assert await _stored(store, board, card) == won
