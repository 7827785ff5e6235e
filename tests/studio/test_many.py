"""What is done to many at once: all tasks that match a filter, and chosen facts."""

from __future__ import annotations

import pytest

from holdfast.studio.screens import tasks_many
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
        unknown = await visitor.send("/studio/tasks?state=nonsense", "cancel-all")
        assert unknown.status_code == 422
    assert await _states(state) == {"writer": ["submitted"]}


@pytest.mark.parametrize("query", ["state=bogus", "state=failed&state=bogus", "since=bogus"])
async def test_a_filter_that_is_none_is_refused_and_does_not_match_all(
    state: State, query: str
) -> None:
    await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    async with Visitor(state) as visitor:
        for more in ("", "&agent=writer&all=cancel"):
            shown = await visitor.get(f"/studio/tasks?{query}{more}")
            assert shown.status_code == 422
            assert "must be one of" in shown.text
            assert "not bogus" in shown.text
        sent = await visitor.send(f"/studio/tasks?{query}&agent=writer", "cancel-all")
        assert sent.status_code == 422
        assert (await visitor.get("/studio/tasks?state=&since=")).status_code == 200
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


async def test_all_paused_tasks_that_match_are_resumed_and_the_page_says_how_many(
    state: State,
) -> None:
    for agent in ("writer", "writer", "reader"):
        made = await state.tasks.submit(agent, ChatMessage.user("Tides?"))
        await state.tasks.pause(made.id)
    await state.tasks.submit("writer", ChatMessage.user("Not paused"))
    async with Visitor(state) as visitor:
        asked = await visitor.page("/studio/tasks?agent=writer&all=resume")
        assert "Resume 2 tasks" in asked
        response = await visitor.send("/studio/tasks?agent=writer", "resume-all")
        assert response.headers["location"] == "/studio/tasks?did=resume.2.0"
        assert "Resumed: 2." in await visitor.page(response.headers["location"])
        failed = await visitor.page("/studio/tasks?state=failed&all=resume")
        assert "No task that matches" in failed
    found = await _states(state)
    assert sorted(found["writer"]) == ["submitted"] * 3
    assert found["reader"] == ["paused"]


async def test_what_more_than_one_request_takes_goes_on_when_the_user_says_so(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks_many, "BATCH", 2)
    monkeypatch.setattr(tasks_many, "BATCHES", 2)
    for _ in range(5):
        await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    async with Visitor(state) as visitor:
        assert "2 or more" in await visitor.page("/studio/tasks?agent=writer&all=cancel")
        sent = {"back": "/studio/tasks?agent=writer"}
        first = await visitor.send("/studio/tasks?agent=writer", "cancel-all", **sent)
        more = first.headers["location"]
        assert more == "/studio/tasks?agent=writer&did=cancel.4.0&all=cancel"
        assert "Cancel 1 task<" in await visitor.page(more)
        last = await visitor.send("/studio/tasks?agent=writer", "cancel-all", **sent)
        assert last.headers["location"] == "/studio/tasks?agent=writer&did=cancel.1.0"


async def test_chosen_tasks_are_run_again_once_however_often_the_form_is_sent(
    state: State,
) -> None:
    made = [await state.tasks.submit("writer", ChatMessage.user("Tides?")) for _ in range(2)]
    for one in made:
        await state.tasks.cancel(one.id)
    open_task = await state.tasks.submit("reader", ChatMessage.user("Tides?"))
    chosen = ",".join(one.id for one in [*made, open_task])
    # What could not be run again stays chosen.
    place = f"/studio/tasks?did=retry.2.1&pick={open_task.id}"
    async with Visitor(state) as visitor:
        for _ in range(2):
            response = await visitor.send(
                "/studio/tasks", "retry", tasks=chosen, submit_key="studio-1"
            )
            assert response.headers["location"] == place
        page = await visitor.page(place)
        assert f'value="{open_task.id}" data-one checked' in page
        assert page.count("data-one checked") == 1
        assert 'name="back" value="/studio/tasks"' in page
        assert "Not possible for 1" in await visitor.page("/studio/tasks?did=retry.2.1")
    assert (await _states(state))["writer"].count("submitted") == 2


async def test_a_canceled_task_counts_only_if_it_had_not_ended(state: State) -> None:
    made = [await state.tasks.submit("writer", ChatMessage.user("Tides?")) for _ in range(4)]
    claimed = await state.tasks.claim("w1", agents=["writer"], limit=2)
    await state.tasks.transition(claimed[0].lease, "completed")
    chosen = ",".join(one.id for one in made)
    async with Visitor(state) as visitor:
        response = await visitor.send("/studio/tasks", "cancel", tasks=chosen)
        assert response.headers["location"] == "/studio/tasks?did=cancel.2.0.1.1"
        page = await visitor.page(response.headers["location"])
        assert "Canceled: 2. Requested: 1" in page
        assert "Had ended already: 1." in page
        again = await visitor.send("/studio/tasks", "cancel", tasks=made[3].id)
        assert again.headers["location"] == "/studio/tasks?did=cancel.0.0.1.0"
    found = await _states(state)
    assert sorted(found["writer"]) == ["canceled", "canceled", "completed", "working"]


async def test_what_no_chosen_task_can_do_is_said_on_the_list_with_filter_and_choice(
    state: State,
) -> None:
    ended = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    await state.tasks.cancel(ended.id)
    other = await state.tasks.submit("reader", ChatMessage.user("Tides of Brest?"))
    async with Visitor(state) as visitor:
        for do, reason in (("pause", "ended, or paused already"), ("resume", "not paused")):
            where = "/studio/tasks?agent=writer"
            sent = await visitor.send(where, do, tasks=ended.id, back=where)
            assert sent.status_code == 422
            assert f"Not possible for 1 ({reason})." in sent.text
            assert f'value="{ended.id}" data-one checked' in sent.text
            assert 'name="agent" value="writer"' in sent.text
            assert f"/studio/tasks/{other.id}" not in sent.text
        both = f"{ended.id},{other.id}"
        sent = await visitor.send(
            "/studio/tasks", "pause", tasks=both, back="/studio/tasks?since=day"
        )
        place = f"/studio/tasks?since=day&did=pause.1.1&pick={ended.id}"
        assert sent.headers["location"].replace("%2C", ",") == place
    assert await _states(state) == {"writer": ["canceled"], "reader": ["paused"]}


async def test_a_pause_of_a_task_that_waits_is_a_request(state: State) -> None:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    said = ChatMessage.assistant("Which chapter?")
    ask = StepKey("ask", kind="ask")
    await state.tasks.transition(claimed.lease, "input-required", message=said, ask=ask)
    async with Visitor(state) as visitor:
        sent = await visitor.send("/studio/tasks", "pause", tasks=made.id)
        assert sent.headers["location"] == "/studio/tasks?did=pause.0.0.0.1"
        page = await visitor.page(sent.headers["location"])
        assert "Requested: 1 (at the next step, or after the answer)." in page
        sent = await visitor.send("/studio/tasks", "resume", tasks=made.id)
        assert sent.headers["location"] == "/studio/tasks?did=resume.1.0"
    found = await state.tasks.get(made.id)
    assert found is not None
    assert not found.pause_requested


@pytest.mark.parametrize(
    "word", ["<b>", "cancel", "pay.1.1", "cancel.1.99999999", "cancel.-1.0", "cancel.1.0.1"]
)
async def test_a_link_cannot_put_words_of_its_own_on_a_page(state: State, word: str) -> None:
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/tasks?did={word}")
        assert "data-note" not in page


async def test_the_list_shows_the_questions_that_wait_longest(state: State) -> None:
    for agent in ("one", "two", "three"):
        await state.tasks.submit(agent, ChatMessage.user(f"Task of {agent}"))
        [claimed] = await state.tasks.claim("w1", agents=[agent])
        said = ChatMessage.assistant(f"Question of {agent}")
        ask = StepKey("ask", kind="ask")
        await state.tasks.transition(claimed.lease, "input-required", message=said, ask=ask)
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/tasks")
        assert "Question of one" in page
        assert "Question of two" in page
        assert "Question of three" not in page
        assert "All 3 questions" in page
        assert "Waiting for a person" not in await visitor.page("/studio/tasks?agent=one")
        of_session = await visitor.page("/studio/tasks?session=nowhere")
        assert "No task matches" in of_session


async def test_what_is_only_requested_of_all_that_match_is_counted_apart(state: State) -> None:
    for _ in range(3):
        await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner="ana")
    await state.tasks.claim("w1", agents=["writer"], limit=2)
    async with Visitor(state) as visitor:
        place = "/studio/tasks?agent=writer"
        sent = await visitor.send(place, "pause-all", back=place)
        assert sent.headers["location"] == f"{place}&did=pause.1.0.0.2"
    async with Visitor.owner(state, "ana") as visitor:
        sent = await visitor.send(place, "cancel-all", back=place)
        assert sent.headers["location"] == f"{place}&did=cancel.1.0.0.2"
