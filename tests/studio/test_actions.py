"""Every form of every screen, and what it does to the stores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast import ChatMessage, Event, State
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import ALL_AGENTS, AgentId
from holdfast.values.tasks.events import StepKey
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio


async def _asking(state: State, owner: str = "") -> str:
    task = await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner=owner)
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    said = ChatMessage.assistant("Which chapter?")
    await state.tasks.transition(
        claimed.lease, "input-required", message=said, ask=StepKey("ask", kind="ask")
    )
    return task.id


async def _state_of(state: State, task_id: str) -> str:
    task = await state.tasks.get(task_id)
    assert task is not None
    return str(task.state)


async def test_an_answer_from_the_inbox_counts_once(state: State) -> None:
    task = await _asking(state)
    async with Visitor(state) as visitor:
        for _ in range(2):
            response = await visitor.send(
                "/studio", "answer", task=task, text="Chapter 2", message_id="m1", back="/studio"
            )
            assert (response.status_code, response.headers["location"]) == (303, "/studio")
        assert "Nobody waits for you" in await visitor.page("/studio")
    found = await state.tasks.get(task)
    assert found is not None
    assert [one.text for one in found.messages] == ["Tides?", "Which chapter?", "Chapter 2"]
    assert str(found.state) == "submitted"


async def test_a_question_with_options_has_a_button_for_each(state: State) -> None:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    said = replace(ChatMessage.assistant("Send it?"), metadata={"options": ["yes", "<no>"]})
    await state.tasks.transition(
        claimed.lease,
        "input-required",
        message=said,
        ask=StepKey("ask", kind="ask"),
        options=["yes", "<no>"],
    )
    async with Visitor(state) as visitor:
        for path in ("/studio", f"/studio/tasks/{made.id}"):
            page = await visitor.page(path)
            assert 'name="text" value="yes">yes</button>' in page
            assert 'value="&lt;no&gt;"' in page
        wrong = await visitor.send("/studio", "answer", task=made.id, text="maybe")
        assert wrong.status_code == 422
        assert "must be one of" in wrong.text
        assert (
            await visitor.send("/studio", "answer", task=made.id, text="yes")
        ).status_code == 303
    assert await _state_of(state, made.id) == "submitted"


async def test_an_empty_answer_is_refused(state: State) -> None:
    task = await _asking(state)
    async with Visitor(state) as visitor:
        response = await visitor.send(f"/studio/tasks/{task}", "answer", text="  ")
    assert response.status_code == 422
    assert "write an answer" in response.text
    assert await _state_of(state, task) == "input-required"


async def test_a_task_is_submitted_once(state: State) -> None:
    async with Visitor(state) as visitor:
        places = set()
        for _ in range(2):
            response = await visitor.send(
                "/studio/tasks",
                "submit",
                agent="writer",
                text="Tides?",
                submit_key="k1",
                owner="ana",
            )
            places.add(response.headers["location"])
    page = await state.tasks.list(count=True)
    assert page.total == 1
    assert places == {f"/studio/tasks/{page.tasks[0].id}"}
    assert page.tasks[0].owner == "ana"


async def test_a_task_is_paused_resumed_canceled_and_run_again(state: State) -> None:
    task = (await state.tasks.submit("writer", ChatMessage.user("Tides?"))).id
    async with Visitor(state) as visitor:
        for do, after in (("pause", "paused"), ("resume", "submitted"), ("cancel", "canceled")):
            assert (await visitor.send(f"/studio/tasks/{task}", do)).status_code == 303
            assert await _state_of(state, task) == after
        page = await visitor.page(f"/studio/tasks/{task}")
        assert 'data-confirm="Run this task again from the start' in page
        response = await visitor.send(f"/studio/tasks/{task}", "retry", submit_key="again")
        twice = await visitor.send(f"/studio/tasks/{task}", "retry", submit_key="again")
    assert response.headers["location"] == twice.headers["location"]
    assert (await state.tasks.list(count=True)).total == 2


async def test_a_pause_before_an_answer_is_shown_and_can_be_withdrawn(state: State) -> None:
    task = await _asking(state)
    path = f"/studio/tasks/{task}"
    async with Visitor(state) as visitor:
        before = await visitor.page(path)
        assert 'data-done="Pauses after the answer."' in before
        assert "The task goes on when a worker is free" in before
        await visitor.send(path, "pause")
        for where in (path, "/studio", "/studio/tasks?agent=writer"):
            assert "pauses after the answer" in await visitor.page(where), where
        paused = await visitor.page(path)
        assert "Do not pause" in paused
        assert ">Pause</button>" not in paused
        assert "The task is paused now, as was requested" in paused
        await visitor.send(path, "resume")
        again = await visitor.page(path)
        assert "pauses after the answer" not in again
        assert ">Pause</button>" in again
        await visitor.send(path, "pause")
        await visitor.send(path, "answer", text="Chapter 2")
    assert await _state_of(state, task) == "paused"


async def test_a_request_to_a_worker_is_shown_until_the_worker_sees_it(state: State) -> None:
    task = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    await state.tasks.claim("w1", agents=["writer"])
    path = f"/studio/tasks/{task.id}"
    async with Visitor(state) as visitor:
        await visitor.send(path, "pause")
        assert "pauses at its next step" in await visitor.page(path)
        await visitor.send(path, "cancel")
        for where in (path, "/studio/tasks"):
            assert "cancel requested: its worker ends it" in await visitor.page(where)


async def test_a_failed_task_goes_on_and_a_task_is_forked(state: State) -> None:
    task = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    await state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    await state.tasks.transition(claimed.lease, "failed", note="no route")
    path = f"/studio/tasks/{task.id}"
    async with Visitor(state) as visitor:
        assert "Go on from the last step" in await visitor.page(path)
        assert "Fork from here" in await visitor.page(f"{path}?at=4")
        targets = []
        for do, fields in (
            ("resume-failed", {"submit_key": "a"}),
            ("resume-failed", {"submit_key": "a"}),
            ("fork", {"submit_key": "b", "at": "4", "text": "Tides of Brest?"}),
        ):
            response = await visitor.send(path, do, **fields)
            assert response.status_code == 303, response.text
            targets.append(response.headers["location"])
        for at in ("", "x", "-1", "9" * 30):
            assert (await visitor.send(path, "fork", at=at)).status_code == 422
        assert targets[0] == targets[1] != targets[2]
        for target in targets:
            assert "<b>fetch</b>" in await visitor.page(target)
        assert "Tides of Brest?" in await visitor.page(targets[2])


async def test_a_refused_action_says_why(state: State) -> None:
    task = (await state.tasks.submit("writer", ChatMessage.user("Tides?"))).id
    async with Visitor(state) as visitor:
        response = await visitor.send(f"/studio/tasks/{task}", "retry")
        nowhere = await visitor.send("/studio/tasks/no-such-task", "cancel")
    assert response.status_code == 409
    assert "That did not work" in response.text
    assert nowhere.status_code == 404


async def test_many_tasks_are_canceled_at_once(state: State) -> None:
    tasks = [(await state.tasks.submit("w", ChatMessage.user(f"{at}"))).id for at in range(3)]
    async with Visitor(state) as visitor:
        response = await visitor.send("/studio/tasks", "cancel", tasks=",".join(tasks[:2]))
        wrong = await visitor.send("/studio/tasks", "cancel", tasks="no-such-task")
    assert response.status_code == 303
    assert [await _state_of(state, one) for one in tasks] == ["canceled", "canceled", "submitted"]
    assert wrong.status_code == 422


async def test_feedback_is_stored_once(state: State) -> None:
    task = (await state.tasks.submit("w", ChatMessage.user("Tides?"))).id
    async with Visitor(state) as visitor:
        for _ in range(2):
            await visitor.send(
                f"/studio/tasks/{task}", "feedback", text="wrong page", rating="2", feedback_id="f1"
            )
        page = await visitor.page(f"/studio/tasks/{task}")
        assert "wrong page" in page
        assert "operator (Studio)" in page
    [found] = await state.tasks.list_feedback(task)
    assert (found.text, found.rating) == ("wrong page", 2)
    assert found.metadata == {"by": "operator (Studio)"}


async def test_a_board_is_made_and_its_cards_move(state: State) -> None:
    path = "/studio/boards/c1"
    async with Visitor(state) as visitor:
        await visitor.send(path, "add", title="Read")
        [board] = await state.boards.get_boards_by_conversation("c1")
        card = {"board": board.id, "card": board.tasks[0].id}
        await visitor.send(path, "add", board=board.id, title="Write")
        await visitor.send(path, "move", **card, to="in_progress")
        await visitor.send(path, "rename", **card, title="Read twice", version="2")
        await visitor.send(path, "note", **card, note="the second half", version="3")
        late = [
            await visitor.send(path, do, **card, **values, version="3")
            for do, values in (
                ("move", {"to": "blocked"}),
                ("rename", {"title": "Skip"}),
                ("note", {"note": ""}),
            )
        ]
        assert [answer.status_code for answer in late] == [409] * 3
        assert "the second half" in await visitor.page(path)
        [board] = await state.boards.get_boards_by_conversation("c1")
        assert [(one.title, str(one.status)) for one in board.tasks] == [
            ("Read twice", "in_progress"),
            ("Write", "planned"),
        ]
        await visitor.send(path, "move", **card, to="failed")
        await visitor.send(path, "afresh", **card)
        [board] = await state.boards.get_boards_by_conversation("c1")
        assert str(board.tasks[0].status) != "failed"
        await visitor.send(path, "remove", **card)
        [board] = await state.boards.get_boards_by_conversation("c1")
        assert [one.title for one in board.tasks] == ["Write"]
        refused = await visitor.send(path, "move", **card, to="succeeded")
        other = {"board": board.id, "card": board.tasks[0].id}
        odd = [
            await visitor.send(path, "move", **other, to="moon"),
            await visitor.send(path, "note", **other, note="x", version="9" * 30),
            await visitor.send(path, "note", **other, note="x", version="one"),
        ]
    assert (refused.status_code, [one.status_code for one in odd]) == (404, [422] * 3)


async def test_a_session_is_ended_and_erased(state: State) -> None:
    await state.episodes.start_session("planner", "s1")
    await state.episodes.append(
        [Event(AgentId.parse("planner"), "s1", "note", {"text": "low tide"})]
    )
    await state.short_term.set_state("s1", {"step": 1})
    async with Visitor(state) as visitor:
        await visitor.send("/studio/sessions/s1", "end")
        found = await state.episodes.get_session("s1")
        assert found is not None
        assert found.ended_at is not None
        refused = await visitor.send("/studio/sessions/s1", "erase", confirm="s2")
        assert refused.status_code == 422
        assert await state.episodes.recent(ALL_AGENTS, session_id="s1")
        done = await visitor.send("/studio/sessions/s1", "erase", confirm="s1")
        assert done.status_code == 303
        assert (await visitor.get("/studio/sessions/s1")).status_code == 404
    assert not await state.episodes.recent(ALL_AGENTS, session_id="s1")
    assert await state.short_term.get_state("s1") == {}


async def test_facts_are_added_corrected_forgotten_and_pinned(state: State) -> None:
    path = "/studio/facts"
    async with Visitor(state) as visitor:
        for _ in range(2):
            await visitor.send(path, "add", agent="planner", content="Ana sails", key="k1")
        [fact] = await state.long_term.list("planner")
        await visitor.send(path, "correct", agent="planner", fact=fact.id, content="Ana rows")
        [fact] = await state.long_term.list("planner")
        assert fact.content == "Ana rows"
        await visitor.send(path, "forget", agent="planner", fact=fact.id)
        assert not await state.long_term.list("planner")
        gone = await visitor.send(path, "forget", agent="planner", fact=fact.id)
        assert gone.status_code == 404
        await visitor.send(
            "/studio/recall", "pin", agent="planner", text="Low tide at six", key="p"
        )
    [fact] = await state.long_term.list("planner")
    assert fact.content == "Low tide at six"


async def test_entities_and_relationships_are_deleted(state: State) -> None:
    await state.graph.add_entities([Entity("P", {"name": "Ana"}, id="a"), Entity("P", {}, id="b")])
    [edge] = await state.graph.add_relationships([Relationship("a", "b", "knows")])
    async with Visitor(state) as visitor:
        await visitor.send("/studio/graph", "delete-relationship", relationship=edge)
        assert not (await state.graph.get_neighbors("a")).relationships
        await visitor.send("/studio/graph", "delete-entity", entity="a")
        assert (await visitor.get("/studio/graph?from=a")).status_code == 404


async def test_a_subject_is_erased_after_its_name_is_typed(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    for view in (ana, bob):
        for session in ("s1", "s2"):
            await view.short_term.set_state(session, {"a": 1})
    async with Visitor(state) as visitor:
        shown = await visitor.page("/studio/erase?subject=ana")
        assert '<td>states</td><td class="r">2</td>' in shown
        for confirm in ("", "bob", "Ana"):
            refused = await visitor.send("/studio/erase", "erase", subject="ana", confirm=confirm)
            assert refused.status_code == 422
        assert await ana.short_term.get_state("s1") == {"a": 1}
        one = {"subject": "ana", "session": "s1", "confirm": "ana"}
        assert "The receipt" in (await visitor.send("/studio/erase", "erase", **one)).text
        assert await ana.short_term.get_state("s1") == {}
        assert await ana.short_term.get_state("s2") == {"a": 1}
        await visitor.send("/studio/erase", "erase", subject="ana", confirm="ana")
        assert await ana.short_term.get_state("s2") == {}
        assert await bob.short_term.get_state("s1") == {"a": 1}
        listed = await visitor.page("/studio/erase")
    assert listed.count("finished") == 2
    assert "ana" not in listed.partition('aria-label="Erasures"')[2].partition("</section>")[0]


async def test_a_key_is_shown_once_and_revoked(state: State) -> None:
    async with Visitor(state) as visitor:
        response = await visitor.send(
            "/studio/keys", "create", owner="ana", name="laptop", scope="reader", days="30"
        )
        [key] = await state.keys.list_keys()
        page = await visitor.page("/studio/keys")
        assert f'data-confirm="Revoke this key for good: ana, laptop, id …{key.id[-6:]}"' in page
        text = response.text.partition('class="keytext">')[2].partition("<")[0]
        assert (await state.keys.verify(text)) is not None
        assert (str(key.scope), key.owner) == ("reader", "ana")
        assert text not in await visitor.page("/studio/keys")
        await visitor.send("/studio/keys", "revoke", key=key.id)
        assert await state.keys.verify(text) is None
        for days in ("0", "x", "999999", "-1"):
            refused = await visitor.send("/studio/keys", "create", owner="ana", days=days)
            assert refused.status_code == 422
