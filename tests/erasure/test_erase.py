"""What an erasure deletes and what it leaves, in each scope, on each wiring."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import ChatMessage, Document, ManualClock, State
from holdfast.errors import InvalidInputError, NotFoundError, NotSupportedError
from holdfast.values.ids import new_ref
from tests.erasure.world import AGENT, ELSEWHERE, OTHER, SESSION, fill, seen

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _worlds(state: State) -> dict[str, tuple[State, list[str], dict[str, Any]]]:
    """Fill the data of two owners, of nobody and of another tenant."""
    views = {
        "ana": state.for_owner("ana"),
        "bob": state.for_owner("bob"),
        "nobody": state.for_owner(""),
        "tenant": state.for_tenant(new_ref()).for_owner("ana"),
    }
    found = {}
    for name, view in views.items():
        ids = await fill(view, name)
        found[name] = view, ids, await seen(view, ids)
        assert len(found[name][2]) == 28
    return found


async def test_a_subject_is_erased_everywhere_and_nobody_else_is_touched(state: State) -> None:
    worlds = await _worlds(state)
    key = await state.keys.create("ana")
    other = await state.keys.create("bob")
    before = await state.erase(subject="ana", dry_run=True)
    report = await state.erase(subject="ana")
    assert report.counts == before.counts
    assert report.counts == {
        "keys": 1,
        "schedules": 2,
        "tasks": 4,
        "sessions": 3,
        "states": 2,
        "facts": 2,
        "collections": 1,
        "entities": 1,
        "boards": 4,
        "channels": 1,
        "threads": 2,
        "items": 1,
    }
    for name, (view, ids, was) in worlds.items():
        assert await seen(view, ids) == ({} if name == "ana" else was), name
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}
    assert await state.keys.verify(key.text) is None
    assert await state.keys.verify(other.text) is not None
    assert await worlds["ana"][0].episodes.recall(AGENT, "said") == []


async def test_a_session_is_erased_with_all_that_is_stored_under_its_id(state: State) -> None:
    worlds = await _worlds(state)
    report = await state.erase(subject="ana", session=SESSION)
    assert report.counts == {"tasks": 2, "sessions": 1, "states": 1, "boards": 2, "threads": 1}
    for name, (view, ids, was) in worlds.items():
        left = await seen(view, ids)
        if name == "ana":
            gone = set(was) - set(left)
            assert {one for one in gone if one.split()[-1] not in ids} == {
                *("history writer s1", "history editor s1", "session s1", "state s1", "thread s1"),
                "events",
            }
            assert len(gone & {f"board {one}" for one in ids}) == 2
            assert len(gone & {f"task {one}" for one in ids}) == 2
        else:
            assert left == was, name


async def test_a_session_is_erased_with_its_forks_of_the_same_owner(state: State) -> None:
    ana = state.for_owner("ana")
    for view in (ana, state):
        await view.history.append(AGENT, ChatMessage.user("said"), session_id=SESSION)
        await view.episodes.fork(SESSION, "fork")
        await view.episodes.fork("fork", "fork of the fork")
        await view.history.append(AGENT, ChatMessage.user("more"), session_id="fork of the fork")
        await view.short_term.set_state("fork", {"a": 1})
        await view.history.append(AGENT, ChatMessage.user("apart"), session_id=ELSEWHERE)
    before = await state.erase(subject="ana", session=SESSION, dry_run=True)
    assert before.counts == {"sessions": 3, "states": 1}
    assert (await state.erase(subject="ana", session=SESSION)).counts == before.counts
    for session in (SESSION, "fork", "fork of the fork"):
        assert await ana.history.get_messages(AGENT, session_id=session) == []
        assert await ana.episodes.get_session(session) is None
        assert len(await state.history.get_messages(AGENT, session_id=session)) > 0
    assert len(await ana.history.get_messages(AGENT, session_id=ELSEWHERE)) == 1


async def test_erasures_of_one_scope_at_once_leave_nothing_and_no_gap_in_the_receipts(
    state: State,
) -> None:
    ids = await fill(state.for_owner("ana"), "ana")
    reports = await asyncio.gather(*(state.erase(subject="ana") for _ in range(3)))
    assert await seen(state.for_owner("ana"), ids) == {}
    numbers = {report.receipt["number"] for report in reports if report.receipt}
    assert numbers == set(range(1, len(numbers) + 1))
    # Who came late found less, or nothing.
    most = max(reports, key=lambda one: sum(one.counts.values()))
    assert sum(most.counts.values()) > 20
    assert all([one.finished async for one in state.ops.erasures()])


async def test_an_agent_is_erased_and_other_agents_keep_what_they_wrote(state: State) -> None:
    worlds = await _worlds(state)
    report = await state.erase(agent=AGENT)
    assert report.counts == {"schedules": 1, "tasks": 2, "sessions": 3, "facts": 1, "boards": 2}
    for name, (view, ids, was) in worlds.items():
        left = await seen(view, ids)
        if name == "nobody":
            gone = set(was) - set(left)
            assert {one for one in gone if one.split()[-1] not in ids} == {
                *("history writer s1", "history writer s2", "session empty", "events"),
                *("facts writer", "schedule writer"),
            }
            assert await view.history.count_messages(OTHER, session_id=ELSEWHERE) == 1
        else:
            assert left == was, name


async def test_a_tenant_is_erased_with_all_its_owners_and_blobs(state: State) -> None:
    worlds = await _worlds(state)
    ref = await state.blobs.store(b"of the tenant", pinned=True)
    report = await state.erase(tenant=state.tenant)
    assert report.counts["tasks"] == 12
    assert report.counts["blobs"] == 1
    for name, (view, ids, was) in worlds.items():
        assert await seen(view, ids) == (was if name == "tenant" else {}), name
    with pytest.raises(NotFoundError):
        await state.blobs.resolve(ref)
    assert (await state.erase(tenant=state.tenant, dry_run=True)).counts == {}


async def test_expired_blobs_go_with_their_tenant() -> None:
    clock = ManualClock()
    async with holdfast.open("memory:", clock=clock) as state:
        await state.blobs.store(b"of the tenant", ttl_seconds=60)
        clock.advance(61)
        await state.erase(tenant=state.tenant)
        assert await state.blobs.sweep() == 0


async def test_blobs_of_a_subject_are_erased_and_no_others(state: State) -> None:
    ana, ben = state.for_owner("ana"), state.for_owner("ben")
    gone = [
        await ana.blobs.store(b"hers", pinned=True),
        await state.blobs.store(b"about her", subject="ana"),
        await ben.blobs.store(b"he says of her", subject="ana", pinned=True),
    ]
    kept = [
        await state.blobs.store(b"of nobody"),
        await ben.blobs.store(b"his", pinned=True),
        await ana.blobs.store(b"she says of him", subject="ben"),
        await state.for_tenant(f"{state.tenant}-other").blobs.store(b"hers too", subject="ana"),
    ]
    assert (await state.erase(subject="ana", dry_run=True)).counts == {"blobs": 3}
    assert (await state.erase(subject="ana")).counts == {"blobs": 3}
    for ref in gone:
        with pytest.raises(NotFoundError):
            await state.blobs.resolve(ref)
    for ref in kept[:3]:
        assert await state.blobs.resolve(ref)
    assert await state.for_tenant(f"{state.tenant}-other").blobs.resolve(kept[3]) == b"hers too"
    # Nobody's blobs are no subject's.
    assert (await state.erase(session="s1")).counts == {}
    assert await state.blobs.resolve(kept[0]) == b"of nobody"


async def test_facts_about_a_subject_are_erased_in_everybody_s_memory_and_no_others(
    state: State,
) -> None:
    ben, other = state.for_owner("ben"), state.for_tenant(f"{state.tenant}-other")
    for view in (state, ben, other):
        about = await view.long_term.save(AGENT, "ana likes tea", subject="ana", topic="drinks")
        await view.long_term.update(AGENT, about, "ana likes coffee")
        await view.long_term.save(AGENT, "ben likes tea", subject="ben", namespace="more")
        await view.long_term.save(AGENT, "nobody likes tea")
    await state.for_owner("ana").long_term.save(AGENT, "said by ana", subject="ben")
    before = await state.erase(subject="ana", dry_run=True)
    # Two versions for nobody and for ben, and her own memory.
    assert before.counts == {"facts": 5}
    assert (await state.erase(subject="ana")).counts == {"facts": 5}
    for view in (state, ben):
        assert [one.content for one in await view.long_term.list(AGENT, superseded=True)] == [
            "nobody likes tea"
        ]
        assert await view.long_term.search(AGENT, "coffee") == []
        [kept] = await view.long_term.list(AGENT, namespace="more")
        assert (kept.content, kept.subject) == ("ben likes tea", "ben")
    assert await state.for_owner("ana").long_term.list(AGENT) == []
    assert len(await other.long_term.list(AGENT, superseded=True)) == 3
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}
    # A fact without a subject is no subject's, whoever is erased.
    assert (await state.erase(subject="carl")).counts == {}
    assert len(await state.long_term.list(AGENT)) == 1


async def test_documents_about_a_subject_are_erased_in_every_collection_and_no_others(
    state: State,
) -> None:
    ben, other = state.for_owner("ben"), state.for_tenant(f"{state.tenant}-other")
    documents = [
        Document.from_text("about ana", id="d1", embedding=[1.0, 0.0], subject="ana"),
        Document.from_text("about ben", id="d2", embedding=[1.0, 0.0], subject="ben"),
        Document.from_text("about nobody", id="d3", embedding=[1.0, 0.0]),
    ]
    for view in (state, ben, other):
        await view.vectors.add(documents)
        await view.vectors.add(documents[:1], collection="only hers")
    await state.for_owner("ana").vectors.add(documents[1:])
    # Four of them, and her own collection.
    assert (await state.erase(subject="ana", dry_run=True)).counts == {"collections": 5}
    assert (await state.erase(subject="ana")).counts == {"collections": 5}
    for view in (state, ben):
        assert {one.id for one in await view.vectors.search([1.0, 0.0])} == {"d2", "d3"}
        assert await view.vectors.get(["d1"]) == []
        assert await view.vectors.list_collections() == ["default"]
    assert await state.for_owner("ana").vectors.list_collections() == []
    assert len(await other.vectors.get(["d1", "d2", "d3"])) == 3
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}


async def test_files_of_a_task_are_deleted_with_it(state: State) -> None:
    ana = state.for_owner("ana")
    task = await ana.tasks.submit(AGENT, ChatMessage.user("x"))
    [claimed] = await state.tasks.claim("w1")
    ref = await state.blobs.store(b"a file", pinned=True)
    kept = await state.blobs.store(b"of nobody", pinned=True)
    await state.tasks.add_cleanup(claimed.lease, "blob", ref)
    await state.erase(subject="ana")
    assert await ana.tasks.get(task.id) is None
    with pytest.raises(NotFoundError):
        await state.blobs.resolve(ref)
    assert await state.blobs.resolve(kept) == b"of nobody"
    assert await state.tasks.claim_cleanup() == []


async def test_an_erased_owner_can_come_back_and_starts_from_nothing(state: State) -> None:
    ana = state.for_owner("ana")
    await fill(ana, "ana")
    await state.erase(subject="ana")
    ids = await fill(ana, "again")
    assert len(await seen(ana, ids)) == 28
    assert (await ana.short_term.get_state(SESSION)) == {"who": "again"}


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ({}, "subject"),
        ({"subject": ""}, "subject"),
        ({"subject": "holdfast.x"}, "subject"),
        ({"tenant": "another"}, "tenant"),
        ({"agent": "a", "session": "s"}, "session"),
        ({"session": ""}, "session"),
        ({"session": "x" * 600}, "session"),
        ({"agent": 5}, "agent_id"),
    ],
)
async def test_a_scope_that_is_none_is_refused_and_nothing_is_deleted(
    state: State, scope: dict[str, Any], field: str
) -> None:
    await state.short_term.set_state("s1", {"a": 1})
    with pytest.raises(InvalidInputError) as caught:
        await state.erase(**scope)
    assert caught.value.field == field
    assert await state.short_term.get_state("s1") == {"a": 1}


async def test_the_view_of_an_owner_cannot_erase(state: State) -> None:
    for view in (state.for_owner("ana"), state.for_owner("")):
        with pytest.raises(NotSupportedError, match="erase for one owner"):
            await view.erase(subject="ana")
