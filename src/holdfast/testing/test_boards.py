"""What every ``TaskStore`` promises about boards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.boards import Boards, TaskStore
from holdfast.testing.harness import Harness
from holdfast.values.boards import Task, TaskList, TaskStatus
from holdfast.values.errors import InvalidInputError, NotFoundError

CONTRACT = "boards"
pytestmark = pytest.mark.asyncio(loop_scope="session")


def _titles(board: TaskList | None) -> list[str]:
    assert board is not None
    return [card.title for card in board.tasks]


async def test_a_board_comes_back_as_it_was_created(store: TaskStore) -> None:
    board = await store.create_task_list(
        "c1",
        ["read", "write"],
        agent_id="writer",
        agent_label="The Writer",
        parent_agent_id="planner",
        max_retries=5,
    )
    assert board == TaskList(
        board.id, "c1", board.tasks, 5, "writer", "The Writer", parent_agent_id="planner"
    )
    plain = await store.create_task_list("c2", ["read"])
    assert plain == TaskList(plain.id, "c2", plain.tasks, 3, "", "", parent_agent_id=None)
    assert await store.get_task_list(board.id) == board
    assert await store.get_by_conversation("c1") == board
    assert await store.get_boards_by_conversation("c2") == [plain]


async def test_a_new_board_has_its_cards_planned_and_in_the_order_of_their_titles(
    store: TaskStore,
) -> None:
    board = await store.create_task_list("c1", ["c", "a", "b", "a"])
    assert board.tasks == [
        Task(card.id, title, TaskStatus.PLANNED, order=order, retry_count=0, note="")
        for order, (card, title) in enumerate(zip(board.tasks, "caba", strict=True))
    ]


async def test_titles_are_stripped_and_blank_ones_dropped(store: TaskStore) -> None:
    board = await store.create_task_list("c1", ["  read\n", "", " \t ", "write  it"])
    assert _titles(board) == _titles(await store.get_task_list(board.id)) == ["read", "write  it"]
    assert [card.order for card in board.tasks] == [0, 1]


async def test_a_board_without_cards_is_legal(store: TaskStore) -> None:
    board = await store.create_task_list("c1", [" "])
    assert await store.get_by_conversation("c1") == board
    assert board.tasks == []


async def test_board_and_card_ids_are_unique(store: TaskStore) -> None:
    boards = [await store.create_task_list("c1", ["a", "a"], agent_id=f"a{n}") for n in range(5)]
    ids = [board.id for board in boards] + [card.id for board in boards for card in board.tasks]
    assert len(set(ids)) == 15


async def test_create_task_list_for_an_existing_pair_replaces_the_board(store: TaskStore) -> None:
    old = await store.create_task_list("c1", ["old"], agent_id="a", max_retries=1)
    other = await store.create_task_list("c1", ["other"], agent_id="b")
    new = await store.create_task_list("c1", ["new"], agent_id="a")
    assert new.id != old.id
    assert new.max_retries == 3
    assert await store.get_task_list(old.id) is None
    assert await store.update_status(old.id, old.tasks[0].id, "failed") is None
    assert await store.get_task_list(new.id) == new
    assert await store.get_task_list(other.id) == other


async def test_a_replaced_board_is_replaced_in_one_step(store: TaskStore) -> None:
    await store.create_task_list("c1", ["1", "2", "3"])
    seen = await asyncio.gather(
        *(
            call
            for _ in range(20)
            for call in (
                store.create_task_list("c1", ["1", "2", "3"]),
                store.get_boards_by_conversation("c1"),
            )
        )
    )
    views = [boards for boards in seen if isinstance(boards, list)]
    assert [[_titles(board) for board in boards] for boards in views] == [[["1", "2", "3"]]] * 20


async def test_a_replaced_board_counts_as_created_last(store: TaskStore) -> None:
    for agent in ("a", "b", "a"):
        await store.create_task_list("c1", ["x"], agent_id=agent)
    boards = await store.get_boards_by_conversation("c1")
    assert [board.agent_id for board in boards] == ["b", "a"]


async def test_of_many_boards_created_at_once_for_one_pair_one_is_left(store: TaskStore) -> None:
    made = await asyncio.gather(*(store.create_task_list("c1", [f"{n}"]) for n in range(20)))
    (left,) = await store.get_boards_by_conversation("c1")
    assert left in made
    found = [await store.get_task_list(board.id) for board in made]
    assert [board for board in found if board] == [left]


async def test_an_unknown_board_is_none(store: TaskStore) -> None:
    assert await store.get_task_list("nothing") is None


async def test_an_unknown_conversation_has_no_boards(store: TaskStore) -> None:
    assert await store.get_by_conversation("nobody") is None
    assert await store.get_boards_by_conversation("nobody") == []


async def test_get_by_conversation_returns_the_board_of_the_agent_without_a_name(
    store: TaskStore,
) -> None:
    await store.create_task_list("c1", ["x"], agent_id="helper")
    main = await store.create_task_list("c1", ["y"])
    await store.create_task_list("c1", ["z"], agent_id="other")
    assert await store.get_by_conversation("c1") == main


async def test_get_by_conversation_without_such_a_board_returns_the_earliest(
    store: TaskStore,
) -> None:
    first = await store.create_task_list("c1", ["x"], agent_id="z")
    await store.create_task_list("c1", ["y"], agent_id="a")
    assert await store.get_by_conversation("c1") == first


async def test_boards_are_ordered_by_creation(store: TaskStore) -> None:
    agents = ["d", "", "b", "c", "a"]
    for agent in agents:
        await store.create_task_list("c1", ["x"], agent_id=agent)
    boards = await store.get_boards_by_conversation("c1")
    await store.add_tasks(boards[0].id, ["y"])
    boards = await store.get_boards_by_conversation("c1")
    assert [board.agent_id for board in boards] == agents


async def test_add_tasks_continues_after_the_highest_order(store: TaskStore) -> None:
    board = await store.create_task_list("c1", ["a", "b", "c"])
    await store.delete_task(board.id, board.tasks[0].id)
    added = await store.add_tasks(board.id, ["d", "e"])
    assert [(card.title, card.order, card.status) for card in added] == [
        ("d", 3, TaskStatus.PLANNED),
        ("e", 4, TaskStatus.PLANNED),
    ]
    found = await store.get_task_list(board.id)
    assert found is not None
    assert found.tasks == [*board.tasks[1:], *added]


async def test_add_tasks_strips_titles_and_drops_blank_ones(store: TaskStore) -> None:
    board = await store.create_task_list("c1", [])
    added = await store.add_tasks(board.id, ["", "  a "])
    assert [(card.title, card.order) for card in added] == [("a", 0)]
    assert await store.add_tasks(board.id, [" "]) == []
    assert _titles(await store.get_task_list(board.id)) == ["a"]


async def test_add_tasks_to_an_unknown_board_is_a_not_found_error(store: TaskStore) -> None:
    with pytest.raises(NotFoundError) as caught:
        await store.add_tasks("nothing", ["a"])
    assert (caught.value.kind, caught.value.key) == ("board", "nothing")


async def test_cards_added_by_many_at_once_all_survive_each_batch_in_one_piece(
    store: TaskStore,
) -> None:
    board = await store.create_task_list("c1", ["first"])
    await asyncio.gather(
        *(store.add_tasks(board.id, [f"{n} a", f"{n} b", f"{n} c"]) for n in range(20))
    )
    found = await store.get_task_list(board.id)
    assert found is not None
    assert [card.order for card in found.tasks] == list(range(61))
    batches = [_titles(found)[at : at + 3] for at in range(1, 61, 3)]
    assert sorted(batches) == sorted([f"{n} a", f"{n} b", f"{n} c"] for n in range(20))


async def test_delete_task_removes_the_card_and_says_so(store: TaskStore) -> None:
    board = await store.create_task_list("c1", ["a", "b"])
    card = board.tasks[0]
    assert await store.delete_task(board.id, card.id) is True
    assert await store.delete_task(board.id, card.id) is False
    assert await store.delete_task("nothing", card.id) is False
    assert _titles(await store.get_task_list(board.id)) == ["b"]


async def test_delete_task_list_removes_the_board_with_its_cards_and_says_so(
    store: Boards,
) -> None:
    board = await store.create_task_list("c1", ["a", "b"], agent_id="planner")
    other = await store.create_task_list("c1", ["c"], agent_id="writer")
    assert await store.delete_task_list("nothing") is False
    assert await store.delete_task_list(board.id) is True
    assert await store.delete_task_list(board.id) is False
    assert await store.get_task_list(board.id) is None
    assert await store.delete_task(board.id, board.tasks[0].id) is False
    assert await store.get_boards_by_conversation("c1") == [other]
    again = await store.create_task_list("c1", ["d"], agent_id="planner")
    assert await store.get_boards_by_conversation("c1") == [other, again]


async def test_a_title_that_is_not_text_is_refused_and_nothing_is_written(
    store: TaskStore,
) -> None:
    board = await store.create_task_list("c1", ["a"])
    bad: Any
    for bad in ("read", None, ["ok", None], ["ok", "\ud800"]):
        with pytest.raises(InvalidInputError, match=r"^task_titles"):
            await store.create_task_list("c1", bad)
        with pytest.raises(InvalidInputError, match=r"^titles"):
            await store.add_tasks(board.id, bad)
    for bad in (None, 7, "\ud800"):
        with pytest.raises(InvalidInputError, match=r"^title:"):
            await store.update_task_title(board.id, board.tasks[0].id, bad)
    assert await store.get_boards_by_conversation("c1") == [board]


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 513, "\ud800", None])
async def test_an_id_that_is_not_an_id_is_refused(store: TaskStore, bad: Any) -> None:
    for field, call in (
        ("conversation_id", store.create_task_list(bad, ["a"])),
        ("agent_id", store.create_task_list("c1", ["a"], agent_id=bad or "\x00")),
        ("parent_agent_id", store.create_task_list("c1", ["a"], parent_agent_id=bad or "\x00")),
        ("conversation_id", store.get_by_conversation(bad)),
        ("conversation_id", store.get_boards_by_conversation(bad)),
        ("task_list_id", store.get_task_list(bad)),
        ("task_list_id", store.add_tasks(bad, ["a"])),
        ("task_id", store.update_status("b", bad, "failed")),
        ("task_id", store.delete_task("b", bad)),
        ("task_id", store.increment_retry("b", bad)),
        ("task_id", store.force_retry("b", bad)),
        ("task_id", store.update_task_title("b", bad, "t")),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == field
    assert await store.get_boards_by_conversation("c1") == []


async def test_titles_notes_and_labels_are_any_text(store: TaskStore) -> None:
    text = "a\x00b 🦀 שלום '; DROP TABLE x; --\nnew line"
    board = await store.create_task_list("c1", [text], agent_label=text, agent_id="agent: ü")
    card = await store.update_status(board.id, board.tasks[0].id, "blocked", text)
    renamed = await store.update_task_title(board.id, board.tasks[0].id, text + "!")
    found = await store.get_task_list(board.id)
    assert card is not None
    assert found is not None
    assert (board.tasks[0].title, board.agent_label, card.note) == (text, text, text)
    assert found.tasks == [renamed]
    assert (found.tasks[0].title, found.agent_label) == (text + "!", text)


async def test_a_card_is_reached_through_its_own_board_only(store: TaskStore) -> None:
    mine = await store.create_task_list("c1", ["a"], agent_id="x")
    other = await store.create_task_list("c1", ["a"], agent_id="y")
    card = mine.tasks[0].id
    assert await store.update_status(other.id, card, "failed") is None
    assert await store.increment_retry(other.id, card) is None
    assert await store.force_retry(other.id, card) is None
    assert await store.update_task_title(other.id, card, "b") is None
    assert await store.delete_task(other.id, card) is False
    assert await store.get_boards_by_conversation("c1") == [mine, other]


async def test_one_conversation_never_sees_anothers_boards(store: TaskStore) -> None:
    mine = await store.create_task_list("c1", ["a"])
    theirs = await store.create_task_list("c2", ["b"])
    assert await store.get_boards_by_conversation("c1") == [mine]
    assert await store.get_by_conversation("c2") == theirs
    assert await store.get_by_conversation("c") is None


async def test_one_tenant_never_sees_anothers_boards(harness: Harness, store: TaskStore) -> None:
    other = harness.store(CONTRACT, tenant="acme")
    board = await store.create_task_list("c1", ["a"])
    card = board.tasks[0]
    assert await other.get_by_conversation("c1") is None
    assert await other.get_task_list(board.id) is None
    assert await other.update_status(board.id, card.id, "failed") is None
    assert await other.delete_task(board.id, card.id) is False
    with pytest.raises(NotFoundError):
        await other.add_tasks(board.id, ["b"])
    theirs = await other.create_task_list("c1", ["theirs"])
    assert await other.get_boards_by_conversation("c1") == [theirs]
    assert await store.get_boards_by_conversation("c1") == [board]


async def test_what_a_store_returns_is_the_callers_to_mutate(store: TaskStore) -> None:
    board = await store.create_task_list("c1", ["a", "b"])
    kept = list(board.tasks)
    board.tasks.clear()
    for found in (
        await store.get_task_list(board.id),
        await store.get_by_conversation("c1"),
        (await store.get_boards_by_conversation("c1"))[0],
    ):
        assert found is not None
        assert found.tasks == kept
        found.tasks.clear()
    (await store.add_tasks(board.id, ["c"])).clear()
    assert _titles(await store.get_task_list(board.id)) == ["a", "b", "c"]


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: TaskStore) -> None:
    titles = ["a"]
    board = await store.create_task_list("c1", titles)
    titles.append("b")
    more = ["c"]
    await store.add_tasks(board.id, more)
    more.append("d")
    assert _titles(await store.get_task_list(board.id)) == ["a", "c"]


async def test_a_board_is_still_there_after_a_reopen(harness: Harness, store: TaskStore) -> None:
    board = await store.create_task_list("c1", ["a", "b"], agent_id="x")
    main = await store.create_task_list("c1", ["c"])
    moved = await store.update_status(board.id, board.tasks[0].id, "failed", "why")
    await harness.reopen()
    again = harness.store(CONTRACT)
    found = await again.get_task_list(board.id)
    assert found is not None
    assert found.tasks == [moved, board.tasks[1]]
    assert await again.get_boards_by_conversation("c1") == [found, main]
