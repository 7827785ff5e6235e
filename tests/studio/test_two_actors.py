"""Two owners and two tenants: nobody sees or changes what is not theirs, on any route."""

from __future__ import annotations

import pytest
from starlette.routing import Route

from holdfast import ChatMessage, Event, State
from holdfast.studio import live
from holdfast.studio.access import Access
from holdfast.studio.app import SCREENS
from holdfast.studio.screens.recall_tests import save_test
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_ref
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import TaskRecord
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio
SECRET = "the-secret-of-bob"  # noqa: S105 - a text to look for


async def _bob(state: State) -> dict[str, str]:
    """Everything that Bob has, by the name of the field that would name it."""
    view = state.for_owner("bob")
    task = await view.tasks.submit("writer", ChatMessage.user(SECRET), session_id="c1")
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    await state.tasks.transition(
        claimed.lease,
        "input-required",
        message=ChatMessage.assistant(SECRET),
        ask=StepKey("ask", kind="ask"),
    )
    board = await view.boards.create_task_list("c1", [SECRET])
    await view.episodes.start_session("writer", "c1")
    [event] = await view.episodes.append(
        [Event(AgentId.parse("writer"), "c1", "note", {"text": SECRET})]
    )
    await view.short_term.set_state("c1", {"step": SECRET})
    fact = await view.long_term.save("writer", SECRET)
    await view.graph.add_entities([Entity("P", {"name": SECRET}, id="e1")])
    await view.graph.add_entities([Entity("P", {"name": SECRET}, id="e2")])
    await view.graph.add_relationships([Relationship("e1", "e2", "knows", {}, "r1")])
    test = {"agent": "writer", "question": SECRET, "event": str(event.id)}
    key = await state.keys.create("bob")
    return {
        "test": await save_test(view, test),
        "key": key.key.id,
        "task": task.id,
        "board": board.id,
        "card": board.tasks[0].id,
        "fact": fact,
        "event": event.id,
    }


def _paths(bob: dict[str, str]) -> list[str]:
    return [
        "/studio",
        "/studio/tasks",
        "/studio/tasks?owner=bob",
        "/studio/tasks?agent=writer&context=c1",
        f"/studio/tasks/{bob['task']}",
        f"/studio/tasks/{bob['task']}?at=2",
        "/studio/boards",
        "/studio/boards/c1",
        "/studio/boards/c1?owner=bob",
        "/studio/sessions",
        "/studio/sessions?owner=bob&agent=writer",
        "/studio/sessions/c1",
        "/studio/sessions/c1?owner=bob",
        "/studio/recall?agent=writer&q=secret&owner=bob",
        "/studio/facts?agent=writer&owner=bob",
        "/studio/graph?from=e1&owner=bob",
        "/studio/graph?q=e1",
        "/studio/graph?from=e1&to=e1&hide=e2&owner=bob",
        "/studio/sessions/c1?at=1&owner=bob",
        "/studio/search?q=secret&owner=bob",
        "/studio/search?q=c1&owner=bob",
        f"/studio/search?q={bob['task']}",
        "/studio/palette?q=secret&owner=bob",
        "/studio/palette?q=writer&owner=bob",
        f"/studio/palette?q={bob['task']}",
        "/studio/recall/tests?owner=bob",
        f"/studio/recall?agent=writer&q=secret&near={bob['event']}&owner=bob",
        f"/studio/facts?agent=writer&history={bob['fact']}&owner=bob",
        "/studio/sessions?q=secret&owner=bob",
        "/studio/graph?from=e1&expand=e2&types=knows&owner=bob",
        "/studio/tasks?session=c1&all=cancel",
        "/studio/tasks?agent=writer&all=resume",
        "/studio/tenants",
        "/studio/health",
        "/studio/dead-letters",
        "/studio/keys",
        "/studio/erase?subject=bob",
        "/studio/erase?subject=bob&session=c1",
    ]


def _forms(bob: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
    card = {"board": bob["board"], "card": bob["card"]}
    task = f"/studio/tasks/{bob['task']}"
    return [
        ("/studio", "answer", {"task": bob["task"], "text": "x"}),
        ("/studio", "cancel", {"task": bob["task"]}),
        ("/studio/tasks", "cancel", {"tasks": bob["task"]}),
        *(
            (task, do, {"text": "x", "at": "1"})
            for do in (
                *("answer", "cancel", "pause", "resume", "retry", "resume-failed"),
                *("fork", "feedback"),
            )
        ),
        *(("/studio/tasks", do, {"tasks": bob["task"]}) for do in ("pause", "resume", "retry")),
        ("/studio/boards/c1?owner=bob", "afresh", card),
        ("/studio/boards/c1?owner=bob", "add", {"board": bob["board"], "title": "x"}),
        ("/studio/graph?owner=bob", "delete-relationship", {"relationship": "r1"}),
        ("/studio/recall/tests?owner=bob", "delete-test", {"test": bob["test"]}),
        ("/studio/keys", "revoke", {"key": bob["key"]}),
        ("/studio/keys", "rotate", {"key": bob["key"]}),
        ("/studio/keys", "delete", {"key": bob["key"]}),
        ("/studio/dead-letters", "replay", {"letter": "d1"}),
        ("/studio/boards/c1?owner=bob", "move", {**card, "to": "in_progress"}),
        ("/studio/boards/c1", "rename", {**card, "title": "x"}),
        ("/studio/boards/c1?owner=bob", "note", {**card, "note": "x"}),
        ("/studio/boards/c1?owner=bob", "remove", card),
        ("/studio/sessions/c1?owner=bob", "end", {}),
        ("/studio/facts?owner=bob", "forget", {"agent": "writer", "fact": bob["fact"]}),
        (
            "/studio/facts?owner=bob",
            "correct",
            {"agent": "writer", "fact": bob["fact"], "content": "x"},
        ),
        ("/studio/graph?owner=bob", "delete-entity", {"entity": "e1"}),
        ("/studio/sessions/c1?owner=bob", "forget", {"event": bob["event"]}),
        ("/studio/recall?owner=bob", "forget", {"session": "c1", "event": bob["event"]}),
        ("/studio/sessions/c1?owner=bob", "fork", {"at": "1", "into": "c2"}),
        ("/studio/keys", "create", {"owner": "ana"}),
        ("/studio/erase", "erase", {"subject": "bob", "confirm": "bob"}),
        ("/studio/dead-letters", "discard", {"letter": "d1"}),
    ]


def _own(bob: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
    """Forms that are no error for somebody else, since they are about what the sender has."""
    fact = {"agent": "writer", "content": "x", "text": "x"}
    return [
        *(
            ("/studio/tasks?agent=writer", f"{do}-all", {})
            for do in ("cancel", "pause", "resume", "retry")
        ),
        ("/studio/facts?owner=bob", "forget-many", {"agent": "writer", "tasks": bob["fact"]}),
        ("/studio/facts?owner=bob", "add", fact),
        ("/studio/recall?owner=bob", "pin", fact),
        (
            "/studio/recall/tests?owner=bob",
            "save-test",
            {"agent": "writer", "question": "x", "event": bob["event"]},
        ),
        ("/studio/tasks", "submit", {"agent": "reader", "text": "x"}),
        ("/studio/sessions/c1?owner=bob", "erase", {"confirm": "c1"}),
    ]


async def test_every_route_and_every_action_is_in_the_matrix() -> None:
    names = ("test", "key", "task", "board", "card", "fact", "event")
    bob = {name: f"{name}-1" for name in names}
    pages = {path.partition("?")[0] for path in _paths(bob)}
    sent = {(path.partition("?")[0], do) for path, do, _ in [*_forms(bob), *_own(bob)]}
    for screen in SCREENS:
        route = Route(screen.path, print)
        assert screen is live.SCREEN or any(route.path_regex.match(path) for path in pages)
        for do in screen.actions:
            assert any(do == name and route.path_regex.match(path) for path, name in sent), (
                screen.path,
                do,
            )


async def _checked(state: State, visitor: Visitor, bob: dict[str, str]) -> None:
    view = state.for_owner("bob")
    before = await view.tasks.get(bob["task"])
    for path in _paths(bob):
        response = await visitor.get(path)
        assert SECRET not in response.text, path
        assert response.status_code in {200, 404}, path
    for path, do, fields in _forms(bob):
        response = await visitor.send(path, do, **fields)
        assert SECRET not in response.text, path
        assert response.status_code in {404, 409, 422}, (path, do, response.status_code)
    # These change what is the session's own, or nothing; never what is Bob's.
    for path, do, fields in _own(bob):
        response = await visitor.send(path, do, **fields)
        assert SECRET not in response.text, path
        assert response.status_code in {303, 404, 422}, (path, do, response.status_code)
    # Erasing a session that is not there has no effect, and is no error.
    await visitor.send("/studio/sessions/c1?owner=bob", "erase", confirm="c1")
    await _unchanged(state, bob, before)


async def _unchanged(state: State, bob: dict[str, str], before: TaskRecord | None) -> None:
    view = state.for_owner("bob")
    assert await view.tasks.get(bob["task"]) == before
    [board] = await view.boards.get_boards_by_conversation("c1")
    assert [(one.title, str(one.status)) for one in board.tasks] == [(SECRET, "planned")]
    assert len(await view.long_term.list("writer")) == 1
    assert len(await view.episodes.recent("writer", session_id="c1")) == 1
    assert await view.short_term.get_state("c1") == {"step": SECRET}
    assert (await view.graph.get_neighbors("e1")).entities
    assert (await view.graph.get_neighbors("e1")).relationships
    assert await view.items.search(("studio", "recall-tests"))
    assert [one.revoked_at for one in await state.keys.list_keys()] == [None]


async def test_an_owner_sees_and_changes_nothing_of_another(state: State) -> None:
    bob = await _bob(state)
    async with Visitor.owner(state, "ana") as visitor:
        await _checked(state, visitor, bob)


async def test_an_operator_of_another_tenant_sees_and_changes_nothing(state: State) -> None:
    bob = await _bob(state)
    before = await state.for_owner("bob").tasks.get(bob["task"])
    session = Access().open(new_ref(), key_id="k1")
    async with Visitor(state, session) as visitor:
        for path in _paths(bob):
            assert SECRET not in (await visitor.get(path)).text, path
        for path, do, fields in [*_forms(bob), *_own(bob)]:
            response = await visitor.send(path, do, **fields)
            assert SECRET not in response.text, (path, do)
            # No Redis, no dead letters. Keys and erasures are those of the visitor's tenant.
            allowed = {303} if (path, do, fields) in _own(bob) else set()
            allowed |= {200} if do in {"create", "erase"} else set()
            allowed |= {501} if path == "/studio/dead-letters" else set()
            assert response.status_code in {404, 409, 422, *allowed}, (path, do)
    await _unchanged(state, bob, before)


async def test_an_owner_sees_what_is_theirs(state: State) -> None:
    bob = await _bob(state)
    async with Visitor.owner(state, "bob") as visitor:
        for path in ("/studio", f"/studio/tasks/{bob['task']}", "/studio/boards/c1"):
            assert SECRET in await visitor.page(path)
        for path in ("/studio/sessions/c1", "/studio/facts?agent=writer", "/studio/graph?from=e1"):
            assert SECRET in await visitor.page(path)


async def test_the_operator_sees_the_memory_of_a_chosen_owner(state: State) -> None:
    bob = await _bob(state)
    async with Visitor(state) as visitor:
        assert SECRET in await visitor.page(f"/studio/tasks/{bob['task']}")
        for path in ("/studio/boards/c1", "/studio/facts?agent=writer"):
            more = "&" if "?" in path else "?"
            assert SECRET not in await visitor.page(path)
            assert SECRET in await visitor.page(f"{path}{more}owner=bob")


@pytest.mark.parametrize("screen", [one.path for one in SCREENS if one.operators])
async def test_screens_of_operators_are_not_there_for_owners(state: State, screen: str) -> None:
    async with Visitor.owner(state, "ana") as visitor:
        response = await visitor.get(screen)
        assert response.status_code == 404
        assert f'href="{screen}"' not in await visitor.page("/studio")


async def test_an_owner_sees_of_a_task_what_the_service_shows(state: State) -> None:
    view = state.for_owner("ana")
    task = await view.tasks.submit("writer", ChatMessage.user("hello"))
    [claimed] = await state.tasks.claim("the-worker-7", agents=["writer"])
    await state.tasks.record_step(claimed.lease, StepKey("query"), {"password": SECRET})
    child = await state.tasks.submit_child(
        claimed.lease, StepKey("first", kind="child"), "pricing", ChatMessage.user(SECRET)
    )
    await state.tasks.transition(claimed.lease, "failed", note=f"ValueError: {SECRET}")
    paths = ("/studio/tasks", f"/studio/tasks/{task.id}", f"/studio/tasks/{task.id}?at=5")
    async with Visitor.owner(state, "ana") as visitor:
        for path in paths:
            page = await visitor.page(path)
            assert SECRET not in page
            assert "the-worker-7" not in page
        assert (await visitor.get(f"/studio/tasks/{child.id}")).status_code == 404
        refused = await visitor.send("/studio/tasks", "submit", agent="pricing", text="hello")
        assert refused.status_code == 404
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/tasks/{task.id}")
        assert SECRET in page
        assert "the-worker-7" in page
        assert (await visitor.get(f"/studio/tasks/{child.id}")).status_code == 200
