"""What every ``TaskStore`` of ours promises about its list of conversations."""

from __future__ import annotations

import pytest

from holdfast.contracts.boards import Boards
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.boards import ConversationSummary
from holdfast.values.errors import InvalidInputError

CONTRACT = "boards"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _ids(boards: Boards) -> list[str]:
    """All ids, read in pages of two."""
    seen: list[str] = []
    page = await boards.list_conversations(limit=2)
    while page:
        seen += [one.id for one in page]
        page = await boards.list_conversations(limit=2, after=page[-1].id)
    return seen


async def test_conversations_with_boards_are_listed_by_code_points_with_their_counts(
    harness: Harness, store: Boards
) -> None:
    first = await store.create_task_list("b", ["read", "write", "check"])
    await store.create_task_list("b", ["plan"], agent_id="planner")
    await store.create_task_list("Z", [])
    await harness.store(CONTRACT, tenant="acme").create_task_list("theirs", ["a"])
    await store.update_status(first.id, first.tasks[0].id, "succeeded")
    await store.update_status(first.id, first.tasks[1].id, "failed")
    assert await store.list_conversations() == [
        ConversationSummary("Z", boards=1, cards=0, open_cards=0),
        ConversationSummary("b", boards=2, cards=4, open_cards=3),
    ]
    await store.delete_task_list(first.id)
    assert (await store.list_conversations())[1].boards == 1


async def test_a_limit_and_after_select_a_page_of_the_conversations(store: Boards) -> None:
    names = ["a", "é", "holdfast", "holdfast/", "z", "\U0010ffff"]
    for name in names:
        await store.create_task_list(name, ["x"])
    assert await _ids(store) == sorted(names)
    assert await store.list_conversations(limit=0) == []
    assert [one.id for one in await store.list_conversations(after="i")] == ["z", "é", names[-1]]
    with pytest.raises(InvalidInputError) as refused:
        await store.list_conversations(limit=-1)
    assert refused.value.field == "limit"


async def test_conversations_are_those_of_the_owner_who_asks_or_those_that_nobody_owns(
    store: Boards,
) -> None:
    ana, bob = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    for boards, names in ((store, ("a", "z")), (ana, ("m", "n", "o")), (bob, ("m",))):
        for name in names:
            await boards.create_task_list(name, ["x"])
    assert await _ids(store) == ["a", "z"]
    assert await _ids(ana) == ["m", "n", "o"]
    assert await _ids(bob) == ["m"]
    with pytest.raises(InvalidInputError) as refused:
        await ana.list_conversations(after="holdfast.owner:3:bob:a")
    assert refused.value.field == "after"
