"""What a handler sees is its task's owner's, whatever ids a client sends.

Ana's task writes through everything that a handler has. Then the same agent runs a task of the
same context id for another owner, for nobody, for another tenant and for Ana again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast
from holdfast import ANY_OWNER, AgentId, App, ChatMessage, Event, State, TaskContext
from holdfast.content import TextBlock
from holdfast.errors import ConflictError, InvalidInputError, NotFoundError, NotSupportedError
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
TREASURE = "the gold is under the oak"


@pytest.fixture
def state(wired: State) -> State:
    """A state of each wiring."""
    return wired


def _app(**how: Any) -> App:
    """An agent that hides a secret everywhere, and one message later looks for it everywhere."""
    app = App("keeper", **how)

    @app.handler
    async def keep(task: TaskContext) -> None:
        if task.message.text == "hide":
            await task.state.set({"note": TREASURE})
            await task.history.append(ChatMessage.assistant(TREASURE))
            await task.memory.record("decision", {"where": TREASURE})
            await task.memory.facts.save(TREASURE)
            await task.artifact("map.txt", TREASURE.encode(), media_type="text/plain")
            await task.say(TREASURE)
            return
        everywhere = {
            "state": await task.state.get(),
            "state of memory": await task.memory.state.get(),
            "history": [one.text for one in await task.history.messages()],
            "conversation": [one.text for one in await task.conversation()],
            "recent": [one.payload for one in await task.memory.recent()],
            "recall": [one.event.payload for one in await task.memory.recall("gold oak")],
            "recall beside": [
                one.event.payload for one in await task.memory.recall("gold", neighbours=2)
            ],
            "facts": [one.content for one in await task.memory.facts.search("gold")],
            "hydrate": repr(await task.memory.hydrate("gold")),
            "assemble": repr(await task.memory.assemble("gold", 4000)),
        }
        found = sorted(name for name, value in everywhere.items() if TREASURE in repr(value))
        await task.artifact("found", {"found": found, "all": sorted(everywhere)})

    return app


async def _ask(app: App, state: State, owner: str, word: str, context: str = "c1") -> set[str]:
    """Run a task and return where its handler found the secret."""
    task = await app.submit(state, word, owner=owner, session_id=context)
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id, owner=owner)
    assert done is not None
    assert done.state == "completed", done.note
    parts: list[Any] = [part for one in done.artifacts if one.id == "found" for part in one.parts]
    return set(parts[0].data["found"]) if parts else set()


PRIVATE = {"state", "state of memory", "history", "conversation", "recent"}
ACROSS = {"recall", "recall beside", "facts", "hydrate", "assemble"}


async def test_a_handler_sees_what_its_own_owner_stored(state: State) -> None:
    app = _app()
    await _ask(app, state, "ana", "hide")
    assert await _ask(app, state, "ana", "look") == PRIVATE | ACROSS


@pytest.mark.parametrize("other", ["bob", "", "an", "3:ana", "holdfast", "ana:c1"])
async def test_a_handler_sees_nothing_of_another_owner_in_the_same_context(
    state: State, other: str
) -> None:
    app = _app()
    await _ask(app, state, "ana", "hide")
    assert await _ask(app, state, other, "look") == set()
    assert await _ask(app, state, other, "look", context="another") == set()


async def test_a_handler_sees_nothing_of_another_tenant(state: State) -> None:
    app = _app()
    await _ask(app, state, "ana", "hide")
    elsewhere = state.for_tenant(new_ref())
    assert await _ask(app, elsewhere, "ana", "look") == set()


async def test_what_nobody_owns_is_seen_by_tasks_without_an_owner_alone(state: State) -> None:
    app = _app()
    await _ask(app, state, "", "hide")
    assert await _ask(app, state, "", "look") == PRIVATE | ACROSS
    assert await _ask(app, state, "ana", "look") == set()


async def test_in_a_shared_app_owners_share_facts_and_recall_but_no_session(state: State) -> None:
    app = _app(memory="shared")
    await _ask(app, state, "ana", "hide")
    assert await _ask(app, state, "bob", "look") == ACROSS
    assert await _ask(app, state, "ana", "look") == PRIVATE | ACROSS


async def test_a_shared_memory_is_declared_by_name() -> None:
    with pytest.raises(InvalidInputError, match="memory: must be 'owner' or 'shared'"):
        _app(memory="everybody")


async def test_the_view_of_an_owner_is_what_its_tasks_see(state: State) -> None:
    app = _app()
    await _ask(app, state, "ana", "hide")
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    assert await ana.short_term.get_state("c1") == {"note": TREASURE}
    assert TREASURE in repr(await ana.history.get_messages(app.agent, session_id="c1"))
    assert TREASURE in repr(await ana.memory(app.agent).recall("gold"))
    assert TREASURE in repr(await ana.long_term.search(app.agent, "gold"))
    [fact] = await ana.long_term.list(app.agent)
    assert TREASURE in fact.content
    assert await ana.long_term.namespaces(app.agent) == ["default"]
    assert [one.id for one in await ana.episodes.list_sessions(app.agent)] == ["c1"]
    [task] = (await ana.tasks.list()).tasks
    assert TREASURE in repr(await ana.tasks.get(task.id))
    [file] = await ana.tasks.artifacts(task.id)
    assert file.id == "map.txt"
    found = await state.tasks.get(task.id)
    assert found is not None
    assert found.owner == "ana"
    for other in (bob, state.for_owner("")):
        assert await other.short_term.get_state("c1") == {}
        assert await other.history.get_messages(app.agent, session_id="c1") == []
        assert await other.memory(app.agent).recall("gold") == []
        assert await other.long_term.search(app.agent, "gold") == []
        assert await other.long_term.list(app.agent, superseded=True) == []
        assert await other.long_term.namespaces(app.agent) == []
        with pytest.raises(NotFoundError):
            await other.long_term.update(app.agent, fact.id, "mine now")
        assert await other.episodes.list_sessions(app.agent) == []
        assert (await other.tasks.list()).tasks == []
        assert await other.tasks.get(task.id) is None
        assert await other.tasks.get_context("c1") is None
        assert await other.tasks.artifacts(task.id) == []


async def test_the_operator_finds_the_tasks_of_all_owners_and_an_owner_only_its_own(
    state: State,
) -> None:
    tasks = {
        owner: await state.tasks.submit("writer", ChatMessage.user("hi"), owner=owner)
        for owner in ("ana", "bob", None)
    }
    for task in tasks.values():
        assert await state.tasks.get(task.id) == await state.tasks.get(task.id, owner=ANY_OWNER)
        assert (await state.tasks.events(task.id))[0].task_id == task.id
    assert len((await state.tasks.list()).tasks) == 3
    assert {one.owner for one in (await state.tasks.list_contexts()).contexts} == {"ana", "bob", ""}
    for owner, own in tasks.items():
        view = state.for_owner(owner or "").tasks
        assert [one.id for one in (await view.list()).tasks] == [own.id]
        assert len((await view.list_contexts()).contexts) == 1
        for other in tasks.values():
            if other.id == own.id:
                continue
            assert await view.get(other.id) is None
            assert await view.get(other.id, owner=None) is None
            assert await view.get(other.id, owner="") is None
            assert await view.events(other.id) == []
            with pytest.raises(NotFoundError):
                await view.cancel(other.id)
            for reach in (ANY_OWNER, other.owner or ANY_OWNER):
                with pytest.raises(InvalidInputError, match="owner: must be"):
                    await view.get(other.id, owner=reach)


async def test_a_view_of_an_owner_reaches_nobody_else(state: State) -> None:
    ana = state.for_owner("ana")
    assert ana.owner == "ana"
    assert ana.for_owner("ana") is ana
    nobody = state.for_owner("")
    assert nobody.owner == ""
    assert nobody.for_owner("") is nobody
    with pytest.raises(NotSupportedError, match="for_owner for one owner"):
        nobody.for_owner("ana")
    with pytest.raises(InvalidInputError, match="owner: must be 'ana' or left out"):
        await ana.tasks.list(owner="bob")
    with pytest.raises(InvalidInputError, match="owner: must be 'ana' or left out"):
        await ana.tasks.list(owner=ANY_OWNER)
    with pytest.raises(InvalidInputError, match="owner: must be '' or left out"):
        await nobody.tasks.list(owner=ANY_OWNER)
    assert (await ana.tasks.list(owner=None)).tasks == []
    for reach in (
        lambda: ana.for_owner("bob"),
        lambda: ana.for_tenant("other"),
        ana.ops.elsewhere,
        lambda: ana.keys,
        lambda: ana.ops.work,
        lambda: ana.tasks.claim("worker"),
    ):
        with pytest.raises(NotSupportedError, match="owner"):
            reach()


async def test_a_run_that_is_not_kept_is_cleared_at_its_owner(state: State) -> None:
    app = App("keeper", retention=holdfast.HistoryRetention.RUN)

    @app.handler
    async def keep(task: TaskContext) -> None:
        await task.history.append(ChatMessage.assistant(TREASURE))

    task = await app.submit(state, "hide", owner="ana", session_id="c1")
    await app.run_until_idle(state)
    ana = state.for_owner("ana")
    assert await ana.history.get_messages(app.agent, session_id=task.session_id) == []


async def test_a_shared_view_cannot_name_the_agents_of_another_owner(state: State) -> None:
    await state.for_owner("ana").long_term.save(_app().agent, TREASURE)
    await state.for_owner("ana").history.append(
        _app().agent, ChatMessage.user(TREASURE), session_id="c1"
    )
    shared = state.for_owner("bob", memory="shared")
    forged = "holdfast.owner:3:ana:keeper"
    with pytest.raises(InvalidInputError, match="agent_id: must not begin with"):
        await shared.long_term.search(AgentId.parse(forged), "gold")
    with pytest.raises(InvalidInputError, match="agent_id: must not begin with"):
        await shared.memory(forged).recall("gold")
    assert await shared.episodes.list_sessions(_app().agent) == []


async def test_a_view_of_an_owner_takes_no_blob_from_anybody(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    ref = await ana.blobs.store(TREASURE)
    await ana.blobs.pin(ref)
    for name, take in (
        ("unpin", lambda: bob.blobs.unpin(ref)),
        ("delete", lambda: bob.blobs.delete(ref)),
        ("sweep", bob.blobs.sweep),
    ):
        with pytest.raises(NotSupportedError, match=f"call blobs.{name} of the state"):
            await take()
    assert (await ana.blobs.stat(ref)).pinned
    assert await bob.blobs.resolve(ref) == TREASURE.encode()
    assert await state.blobs.delete(ref)


async def test_a_view_of_an_owner_gives_no_wider_one(state: State) -> None:
    await state.for_owner("ana", memory="shared").long_term.save(_app().agent, TREASURE)
    bob = state.for_owner("bob")
    for owner in ("bob", ""):
        with pytest.raises(NotSupportedError, match=r"a shared memory for one owner: .*use the s"):
            bob.for_owner(owner, memory="shared")
    assert await bob.long_term.search(_app().agent, "gold") == []


async def test_a_shared_view_gives_the_private_one_of_its_owner(state: State) -> None:
    shared = state.for_owner("bob", memory="shared")
    assert shared.for_owner("bob", memory="shared") is shared
    await state.for_owner("ana", memory="shared").long_term.save(_app().agent, TREASURE)
    assert TREASURE in repr(await shared.long_term.search(_app().agent, "gold"))
    private = shared.for_owner("bob")
    assert private.owner == "bob"
    assert await private.long_term.search(_app().agent, "gold") == []


async def test_no_view_is_made_for_an_owner_that_begins_as_our_ids_do(state: State) -> None:
    await state.for_owner("ana").short_term.set_state("c1", {"note": TREASURE})
    with pytest.raises(InvalidInputError, match=r"owner: must not begin with 'holdfast\.'"):
        state.for_owner("holdfast.owner:3:ana:c1")
    for reserved in ({"owner": "holdfast.x"}, {"owner": "ana", "new_id": "holdfast.x"}):
        with pytest.raises(InvalidInputError, match=r"must not begin with 'holdfast\.'"):
            await state.ops.assign_context("c1", **reserved)


@pytest.mark.parametrize("owner", ["ana", "it's", "b\\c", "x'\"y", "\u202e"])
async def test_an_error_in_the_view_of_an_owner_names_the_ids_of_its_caller(
    state: State, owner: str
) -> None:
    view, agent = state.for_owner(owner), _app().agent
    said = ChatMessage.user("one", id="m1")
    await view.history.append(agent, said, session_id="c1")
    await view.short_term.set_state("c1", {"a": 1})
    wrong_version = (await view.short_term.snapshot("c1")).version + 1
    event = Event(agent, "c1", "decision", {"a": 1}, id="e1")
    await view.episodes.append([event])
    other = dataclasses.replace(said, content=[TextBlock("two")])
    wrong: list[Callable[[], Awaitable[Any]]] = [
        lambda: view.history.append(agent, other, session_id="c1"),
        lambda: view.episodes.append([dataclasses.replace(event, payload={"a": 2})]),
        lambda: view.memory(agent, session_id="c1").record("decision", {"a": 2}, event_id="e1"),
        lambda: view.short_term.set_state("c1", {}, expected_version=wrong_version),
        lambda: view.short_term.update_state("c1", {"b": 1}, expected_version=wrong_version),
        lambda: view.episodes.end_session("c2"),
    ]
    for at, call in enumerate(wrong):
        with pytest.raises((ConflictError, NotFoundError)) as caught:
            await call()
        reply = f"{caught.value} {caught.value.args} {vars(caught.value)}"
        assert "holdfast." not in reply, (at, reply)
        if at >= 3:
            assert vars(caught.value)["key"] == ("c2" if at == 5 else "c1")
