"""What is done to many at once: all tasks that match a filter, and chosen facts."""

from __future__ import annotations

import pytest

from holdfast.values.content import ChatMessage
from holdfast.values.tasks.events import StepKey
from holdfast.wiring.state import State
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _states(state: State) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in (await state.tasks.list(limit=50)).tasks:
        found.setdefault(str(one.agent), []).append(str(one.state))
    return found


async def test_all_tasks_that_match_are_counted_before_they_are_canceled(state: State) -> None:
    for agent in ("writer", "writer", "writer", "reader"):
        await state.tasks.submit(agent, ChatMessage.user("Tides?"))
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/tasks?agent=writer&all=cancel")
        assert "Cancel 3 tasks" in page
        assert await _states(state) == {"writer": ["submitted"] * 3, "reader": ["submitted"]}
        response = await visitor.send("/studio/tasks?agent=writer", "cancel-all")
        assert response.status_code == 303, response.text
        assert await _states(state) == {"writer": ["canceled"] * 3, "reader": ["submitted"]}
        again = await visitor.page("/studio/tasks?state=canceled&all=retry")
        assert "Run again 3 tasks" in again
        none = await visitor.page("/studio/tasks?agent=nobody&all=pause")
        assert "No task that matches" in none


async def test_all_tasks_need_a_filter(state: State) -> None:
    await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    async with Visitor(state) as visitor:
        response = await visitor.send("/studio/tasks", "cancel-all")
        assert response.status_code == 422
        assert "needs a filter" in response.text
        # A filter that is not known is none.
        unknown = await visitor.send("/studio/tasks?state=nonsense", "cancel-all")
        assert unknown.status_code == 422
    assert await _states(state) == {"writer": ["submitted"]}


async def test_all_that_match_of_an_owner_are_the_owners(state: State) -> None:
    for owner in ("ana", "ben"):
        await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner=owner)
    async with Visitor.owner(state, "ana") as visitor:
        page = await visitor.page("/studio/tasks?agent=writer&owner=ben&all=cancel")
        assert "Cancel 1 task<" in page
        await visitor.send("/studio/tasks?agent=writer&owner=ben", "cancel-all")
    found = {one.owner: str(one.state) for one in (await state.tasks.list(limit=9)).tasks}
    assert found == {"ana": "canceled", "ben": "submitted"}
    async with Visitor.owner(state, "ben", writes=False) as reader:
        page = await reader.page("/studio/tasks?agent=writer&all=cancel")
        assert "Cancel 1 task<" not in page
        refused = await reader.send("/studio/tasks?agent=writer", "cancel-all")
        assert refused.status_code in {403, 404, 405}


async def test_an_owner_changes_no_task_that_the_owner_does_not_see(state: State) -> None:
    parent = await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner="ana")
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    key = StepKey("spawn", kind="spawn")
    child = (
        await state.tasks.submit_child(claimed.lease, key, "reader", ChatMessage.user("Moon?"))
    ).id
    async with Visitor.owner(state, "ana") as visitor:
        page = await visitor.page("/studio/tasks?agent=reader&all=cancel")
        assert "Cancel 1 task<" not in page
        await visitor.send("/studio/tasks?agent=reader", "cancel-all")
        chosen = await visitor.send("/studio/tasks", "pause", tasks=child)
        assert chosen.status_code == 422
    found = {one.id: str(one.state) for one in (await state.tasks.list(limit=9)).tasks}
    assert found[child] == "submitted"
    assert found[parent.id] == "working"
    async with Visitor(state) as operator:
        assert "Cancel 1 task<" in await operator.page(
            "/studio/tasks?owner=ana&agent=reader&all=cancel"
        )
        # An owner is a filter.
        assert "Cancel 2 tasks" in await operator.page("/studio/tasks?owner=ana&all=cancel")


async def test_chosen_facts_are_forgotten(state: State) -> None:
    ids = [await state.long_term.save("planner", text) for text in ("one", "two", "three")]
    async with Visitor(state) as visitor:
        chosen = ",".join([ids[0], "none", ids[2]])
        response = await visitor.send("/studio/facts", "forget-many", agent="planner", tasks=chosen)
        assert response.status_code == 303, response.text
    assert [one.content for one in await state.long_term.list("planner")] == ["two"]
