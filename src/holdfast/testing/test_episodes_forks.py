"""What ``EpisodicMemory`` promises about forks of a session."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA, BEN = AgentId("writer", "ana"), AgentId("writer", "ben")


async def _noted(store: Any, *notes: str, session: str = "s1", agent: AgentId = ANA) -> Any:
    return await store.append([Event(agent, session, "note", {"note": one}) for one in notes])


async def _notes(store: Any, session: str) -> list[str]:
    both = [one for who in (ANA, BEN) for one in await store.recent(who, session_id=session)]
    return [one.payload["note"] for one in sorted(both, key=lambda one: one.seq)]


async def test_a_fork_has_the_log_of_its_session_up_to_a_number_and_goes_on_from_there(
    store: Any,
) -> None:
    await store.start_session(ANA, "s1", metadata={"port": "Brest"})
    first = await _noted(store, "a", "b", "c")
    await _noted(store, "d", agent=BEN)
    fork = await store.fork("s1", "s2", at=2)
    assert (fork.id, fork.agent_id, fork.metadata) == ("s2", ANA, {"port": "Brest"})
    copied = await store.recent(ANA, session_id="s2")
    assert [(one.id, one.seq, one.payload) for one in copied] == [
        (one.id, one.seq, one.payload) for one in first[:2]
    ]
    [event] = await _noted(store, "e", session="s2", agent=BEN)
    assert event.seq == 3
    assert await _notes(store, "s2") == ["a", "b", "e"]
    assert await _notes(store, "s1") == ["a", "b", "c", "d"]


async def test_a_fork_without_a_number_has_the_whole_log(store: Any) -> None:
    await _noted(store, "a", "b")
    await _noted(store, "c", agent=BEN)
    assert (await store.fork("s1", "s2")).parent_at == 3
    assert await _notes(store, "s2") == ["a", "b", "c"]


async def test_a_fork_and_its_session_do_not_see_what_the_other_appends_or_clears(
    store: Any,
) -> None:
    await _noted(store, "a", "b")
    await store.fork("s1", "s2")
    await _noted(store, "c")
    await _noted(store, "d", session="s2")
    assert await store.clear("s1") == 3
    assert await _notes(store, "s2") == ["a", "b", "d"]
    assert await store.delete_session("s1")
    assert await _notes(store, "s2") == ["a", "b", "d"]


async def test_a_fork_is_recalled_by_words_and_by_the_vectors_of_its_writers(store: Any) -> None:
    events = [Event(ANA, "s1", "note", {"note": one}) for one in ("the harbour", "the moon")]
    await store.append(events, embeddings=[[1.0, 0.0], [0.0, 1.0]])
    await store.fork("s1", "s2", at=1)
    hits = await store.recall(ANA, "harbour", session_id="s2")
    assert [one.event.payload["note"] for one in hits] == ["the harbour"]
    near = await store.recall(ANA, [1.0, 0.1], session_id="s2")
    assert [one.event.payload["note"] for one in near] == ["the harbour"]


async def test_a_fork_names_its_session_and_the_number_also_after_that_session_is_deleted(
    store: Any,
) -> None:
    await _noted(store, "a", "b")
    await store.fork("s1", "s2", at=1)
    await store.delete_session("s1")
    found = await store.get_session("s2")
    assert (found.parent, found.parent_at) == ("s1", 1)
    assert [one.parent for one in await store.list_sessions(ANA)] == ["s1"]


async def test_a_fork_that_is_repeated_is_the_same_fork(store: Any) -> None:
    await _noted(store, "a", "b")
    fork = await store.fork("s1", "s2", at=1)
    await _noted(store, "c", session="s2")
    assert await store.fork("s1", "s2", at=1) == fork
    assert await store.fork("s1", "s2") == fork
    assert await _notes(store, "s2") == ["a", "c"]


async def test_a_fork_into_a_session_that_is_or_was_another_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    await _noted(store, "a", "b")
    await _noted(store, "mine", session="s2")
    await _noted(store, "gone", session="s3")
    await store.delete_session("s3")
    await store.fork("s1", "s4", at=1)
    for into, at in (("s2", None), ("s3", None), ("s4", 2)):
        with pytest.raises(ConflictError):
            await store.fork("s1", into, at=at)
    assert await _notes(store, "s2") == ["mine"]
    assert await store.get_session("s3") is None
    assert await _notes(store, "s4") == ["a"]


async def test_a_fork_is_about_the_subject_of_its_session(store: Any) -> None:
    await store.start_session(ANA, "s1", subject="ravi")
    await _noted(store, "a", "b")
    assert (await store.fork("s1", "s2", at=1)).subject == "ravi"
    await store.fork("s2", "s3")
    await store.delete_session("s1")
    assert [(await store.get_session(one)).subject for one in ("s2", "s3")] == ["ravi", "ravi"]


async def test_a_fork_of_an_unknown_session_or_beyond_its_end_is_refused(store: Any) -> None:
    with pytest.raises(NotFoundError):
        await store.fork("nothing", "s2")
    await _noted(store, "a", "b")
    with pytest.raises(InvalidInputError, match="at"):
        await store.fork("s1", "s2", at=3)
    with pytest.raises(InvalidInputError, match="at"):
        await store.fork("s1", "s2", at=-1)
    with pytest.raises(InvalidInputError, match="into"):
        await store.fork("s1", "s1")
    assert await store.get_session("s2") is None


async def test_a_fork_belongs_to_the_owner_of_its_session(harness: Harness, store: Any) -> None:
    ana, ben = store.for_owner(OwnerScope("ana")), store.for_owner(OwnerScope("ben"))
    await _noted(ana, "a")
    fork = await ana.fork("s1", "s2")
    assert (fork.id, fork.parent) == ("s2", "s1")
    with pytest.raises(NotFoundError):
        await ben.fork("s1", "s3")
    assert await ben.get_session("s2") is None
    assert await store.get_session("s2") is None
    with pytest.raises(NotFoundError):
        await harness.store("episodes", tenant="other").fork("s1", "s2")
    assert await _notes(ana, "s2") == ["a"]
