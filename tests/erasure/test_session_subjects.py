"""What is stored under the id of a session goes with the subject of the session."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import ChatMessage, Entity, Relationship, State
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.items import ItemPut
from holdfast.values.failpoints import failpoint
from tests.erasure.world import AGENT

pytestmark = pytest.mark.asyncio(loop_scope="session")
EMPTY = TypedBytes("json", b"{}")


async def test_sessions_about_a_subject_are_erased_with_all_that_is_stored_under_their_ids(
    state: State,
) -> None:
    ben, other = state.for_owner("ben"), state.for_tenant(f"{state.tenant}-other")
    nobody = state.for_owner("")
    views = {"nobody": nobody, "ben": ben, "other": other, "ana": state.for_owner("ana")}
    for view in (nobody, ben, other):
        await view.episodes.start_session(AGENT, "about ana", subject="ana")
        await view.episodes.start_session(AGENT, "about carl", subject="carl")
    await views["ana"].episodes.start_session(AGENT, "about carl", subject="carl")
    was = {}
    for name, view in views.items():
        for session in ("about ana", "about carl", "about nobody"):
            await view.history.append(AGENT, ChatMessage.user("said"), session_id=session)
            await view.short_term.set_state(session, {"step": 1})
            await view.boards.create_task_list(session, ["a card"], agent_id=AGENT)
            await view.checkpoints.put(
                Checkpoint(session, "", "1", None, EMPTY, EMPTY), new_values={}
            )
            await view.tasks.submit(AGENT, ChatMessage.user("x"), session_id=session)
        await view.episodes.fork("about ana", "a fork")
        await view.short_term.set_state("a fork", {"step": 2})
        was[name] = await _under_sessions(view)
    # Two sessions and their forks, and all of her own: her session about Carl too.
    before = await state.erase(subject="ana", dry_run=True)
    assert before.counts == {"tasks": 5, "sessions": 8, "states": 8, "boards": 5, "threads": 5}
    assert (await state.erase(subject="ana")).counts == before.counts
    assert await _under_sessions(views["ana"]) == {}
    assert await _under_sessions(other) == was["other"]
    for name in ("nobody", "ben"):
        left = {at: one for at, one in was[name].items() if at not in ("about ana", "a fork")}
        assert await _under_sessions(views[name]) == left, name
        for view in (nobody, ben):
            assert {hit.event.session_id for hit in await view.episodes.recall(AGENT, "said")} == {
                *("about carl", "about nobody")
            }
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}
    # The ids can be used again, and are about nobody.
    await ben.history.append(AGENT, ChatMessage.user("new"), session_id="about ana")
    assert (await state.erase(subject="ana")).counts == {}
    assert await ben.history.count_messages(AGENT, session_id="about ana") == 1


async def test_items_about_a_subject_are_erased_whoever_owns_them_and_no_others(
    state: State,
) -> None:
    ben, other = state.for_owner("ben"), state.for_tenant(f"{state.tenant}-other")
    for view in (state.for_owner(""), ben, other, state.for_owner("ana")):
        await view.items.put_many(
            [ItemPut(("notes", whom), "k", {"of": whom}, subject=whom) for whom in ("ana", "carl")]
            + [ItemPut(("notes",), "k", {"of": "nobody"})]
        )
    # Two of others, and her own three.
    assert (await state.erase(subject="ana", dry_run=True)).counts == {"items": 5}
    assert (await state.erase(subject="ana")).counts == {"items": 5}
    for view in (state.for_owner(""), ben):
        assert sorted(hit.item.value["of"] for hit in await view.items.search(())) == [
            "carl",
            "nobody",
        ]
    assert await state.for_owner("ana").items.search(()) == []
    assert len(await other.items.search(())) == 3
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}


async def test_entities_and_relationships_about_a_subject_are_erased_and_no_others(
    state: State,
) -> None:
    nobody, ben, ana = (state.for_owner(one) for one in ("", "ben", "ana"))
    other = state.for_tenant(f"{state.tenant}-other")
    for view in (nobody, ben, ana, other):
        await view.graph.add_entities(
            [Entity("person", {}, f"of {whom}", whom) for whom in ("ana", "carl")]
            + [Entity("person", {}, "x"), Entity("person", {}, "y")]
        )
        await view.graph.add_relationships(
            [
                Relationship("x", "y", "knows", {}, "r1", "ana"),
                Relationship("x", "y", "knows", {}, "r2", "carl"),
                Relationship("x", "y", "knows", {}, "r3"),
                Relationship("x", "of ana", "knows", {}, "r4", "carl"),
            ]
        )
    before = await state.erase(subject="ana", dry_run=True)
    assert before.counts == {"entities": 6, "relationships": 2}
    assert (await state.erase(subject="ana")).counts == before.counts
    for view in (nobody, ben):
        assert [one.id for one in await view.graph.list_entities()] == ["of carl", "x", "y"]
        assert [one.id for one in await view.graph.list_relationships("x")] == ["r2", "r3"]
    assert await ana.graph.list_entities() == []
    assert len(await other.graph.list_entities()) == 4
    assert len(await other.graph.list_relationships("x")) == 4
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}


async def test_what_a_deleted_session_about_a_subject_left_is_erased(state: State) -> None:
    ben = state.for_owner("ben")
    for session, whom in (("s1", "ana"), ("s2", "carl")):
        await ben.episodes.start_session(AGENT, session, subject=whom)
        await ben.short_term.set_state(session, {"step": 1})
        await ben.episodes.delete_session(session)
    assert (await state.erase(subject="ana")).counts == {"states": 1}
    assert [await ben.short_term.get_state(one) for one in ("s1", "s2")] == [{}, {"step": 1}]
    # What comes later under the id of the erased session is nobody's.
    await ben.short_term.set_state("s1", {"step": 2})
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}


async def test_what_a_deleted_session_left_is_erased_although_its_id_is_used_again(
    state: State,
) -> None:
    ben = state.for_owner("ben")
    for session in ("appended", "started"):
        await ben.episodes.start_session(AGENT, session, subject="ana")
        await ben.short_term.set_state(session, {"step": 1})
        await ben.episodes.delete_session(session)
    await ben.history.append(AGENT, ChatMessage.user("new"), session_id="appended")
    await ben.episodes.start_session(AGENT, "started")
    assert (await state.erase(subject="ana")).counts == {"sessions": 2, "states": 2}
    for session in ("appended", "started"):
        assert await ben.short_term.get_state(session) == {}
        assert await ben.episodes.get_session(session) is None
    # After the erasure the ids are free.
    again = await ben.episodes.start_session(AGENT, "started", subject="carl")
    assert again.subject == "carl"


async def test_an_interrupted_erasure_still_finds_what_is_stored_under_deleted_sessions(
    state: State,
) -> None:
    ben = state.for_owner("ben")
    for session in ("s1", "s2"):
        await ben.episodes.start_session(AGENT, session, subject="ana")
        await ben.short_term.set_state(session, {"step": 1})
        await ben.checkpoints.put(Checkpoint(session, "", "1", None, EMPTY, EMPTY), new_values={})

    def die() -> None:
        raise _Killed

    # After the two sessions, whose rows named her, and before their states.
    with failpoint("erase.after_delete", die), pytest.raises(_Killed):
        await state.erase(subject="ana")
    assert await ben.episodes.get_session("s1") is None
    assert await ben.short_term.get_state("s1") == {"step": 1}
    report = await state.erase(subject="ana")
    assert report.counts == {"sessions": 2, "states": 2, "threads": 2}
    for session in ("s1", "s2"):
        assert await ben.short_term.get_state(session) == {}
        assert await ben.checkpoints.get(session) is None


class _Killed(BaseException):
    """Ends an erasure as the death of its process would: nothing catches it."""


async def _under_sessions(view: State) -> dict[str, Any]:
    """What is stored under the ids of sessions, by id."""
    found: dict[str, Any] = {}
    for session in ("about ana", "about carl", "about nobody", "a fork"):
        here = {
            "messages": await view.history.count_messages(AGENT, session_id=session),
            "state": await view.short_term.get_state(session),
            "boards": len(await view.boards.get_boards_by_conversation(session)),
            "threads": await view.checkpoints.get(session) is not None,
            "tasks": len((await view.tasks.list(session_id=session)).tasks),
        }
        if any(here.values()):
            found[session] = here
    return found
