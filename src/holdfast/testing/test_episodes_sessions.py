"""The promises of ``EpisodicMemory``: sessions, and clearing their logs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")


def _event(note: str, *, session: str = "s1", agent: AgentId = ANA, **more: Any) -> Event:
    return Event(agent, session, more.pop("type", "observation"), {"note": note}, **more)


def _notes(events: list[Event]) -> list[str]:
    return [event.payload["note"] for event in events]


async def test_sessions_are_created_on_first_use(store: Any) -> None:
    await store.append([_event("x")])
    session = await store.get_session("s1")
    assert (session.id, session.agent_id, session.ended_at) == ("s1", ANA, None)
    assert session.metadata == {}


async def test_start_session_is_idempotent_and_keeps_what_was_started(store: Any) -> None:
    first = await store.start_session(ANA, "s1", metadata={"channel": "mail"})
    again = await store.start_session(BEN, "s1")
    assert again == first
    changed = await store.start_session(ANA, "s1", metadata={})
    assert (changed.started_at, changed.metadata) == (first.started_at, {})
    minted = await store.start_session(ANA)
    assert await store.get_session(minted.id) == minted


async def test_a_session_has_the_subject_that_it_was_started_with(
    harness: Harness, store: Any
) -> None:
    about = await store.start_session(ANA, "s1", subject="ravi")
    assert about.subject == "ravi"
    await store.append([_event("x"), _event("y", session="s2")])
    await store.end_session("s1")
    again = await store.start_session(BEN, "s1", metadata={"n": 1})
    assert (again.subject, again.agent_id, again.ended_at) == ("ravi", ANA, None)
    assert await store.start_session(ANA, "s1", subject="ravi") == again
    await harness.reopen()
    store = harness.store(CONTRACT)
    assert [(await store.get_session(one)).subject for one in ("s1", "s2")] == ["ravi", ""]
    for by in ("started_at", "last_active_at"):
        found = {one.id: one.subject for one in await store.list_sessions(ANA, by=by)}
        assert found == {"s1": "ravi", "s2": ""}


async def test_a_session_with_the_id_of_a_deleted_one_has_its_subject(store: Any) -> None:
    await store.start_session(ANA, "s1", subject="ravi")
    await store.delete_session("s1")
    await store.append([_event("new")])
    assert (await store.get_session("s1")).subject == "ravi"
    await store.delete_session("s1")
    with pytest.raises(ConflictError):
        await store.start_session(ANA, "s1", subject="ben")
    assert await store.get_session("s1") is None
    assert (await store.start_session(ANA, "s1", subject="ravi")).subject == "ravi"
    # One that was about nobody may be about anybody.
    await store.append([_event("x", session="s2")])
    await store.delete_session("s2")
    assert (await store.start_session(ANA, "s2", subject="ben")).subject == "ben"


async def test_starting_a_session_about_another_subject_is_a_conflict_and_nothing_is_changed(
    harness: Harness, store: Any
) -> None:
    await store.append([_event("x", session="s2")])
    first = await store.start_session(ANA, "s1", metadata={"n": 1}, subject="ravi")
    first = await store.end_session("s1")
    for session, subject in (("s1", "ben"), ("s2", "ravi")):
        with pytest.raises(ConflictError) as caught:
            await store.start_session(ANA, session, metadata={"n": 2}, subject=subject)
        assert (caught.value.kind, caught.value.key) == ("session", session)
    assert await store.get_session("s1") == first
    assert ((await store.get_session("s2")).subject, first.metadata) == ("", {"n": 1})
    # Another tenant and another owner have a session of the same id.
    other = harness.store(CONTRACT, tenant="other")
    assert (await other.start_session(ANA, "s1", subject="ben")).subject == "ben"
    theirs = store.for_owner(OwnerScope("ann"))
    await theirs.start_session(ANA, "s1", subject="ben")
    with pytest.raises(ConflictError) as caught:
        await theirs.start_session(ANA, "s1", subject="ravi")
    assert caught.value.key == "s1"


async def test_a_subject_that_is_not_an_id_is_refused_and_no_session_is_started(
    store: Any,
) -> None:
    wrong: Any
    for wrong in ("", "x" * 600, "holdfast.x", 5):
        with pytest.raises(InvalidInputError) as caught:
            await store.start_session(ANA, "s1", subject=wrong)
        assert caught.value.field == "subject"
    assert await store.get_session("s1") is None


async def test_a_session_that_ended_may_be_started_again(store: Any) -> None:
    first = await store.start_session(ANA, "s1")
    await store.end_session("s1")
    again = await store.start_session(ANA, "s1")
    assert (again.ended_at, again.started_at) == (None, first.started_at)


async def test_end_session_keeps_the_first_end(harness: Harness, store: Any) -> None:
    await store.append([_event("x")])
    ended = await store.end_session("s1")
    assert ended.ended_at is not None
    await harness.elapse(60)
    assert await store.end_session("s1") == ended
    assert await store.get_session("s1") == ended
    assert _notes(await store.recent(ANA, session_id="s1")) == ["x"]


async def test_ending_an_unknown_session_is_a_notfounderror(store: Any) -> None:
    with pytest.raises(NotFoundError) as caught:
        await store.end_session("nowhere")
    assert (caught.value.kind, caught.value.key) == ("session", "nowhere")


async def test_sessions_are_listed_newest_first_in_pages(harness: Harness, store: Any) -> None:
    for at in range(5):
        await store.start_session(ANA, f"s{at}")
        await harness.elapse(1)
    await store.start_session(BEN, "ben's")
    seen: list[str] = []
    page = await store.list_sessions(ANA, limit=2)
    while page:
        seen += [session.id for session in page]
        page = await store.list_sessions(ANA, limit=2, cursor=page[-1].cursor)
    assert seen == ["s4", "s3", "s2", "s1", "s0"]


async def test_clear_removes_the_whole_log_of_the_session_and_nothing_of_another(
    store: Any,
) -> None:
    await store.append([_event("a"), _event("b", agent=BEN), _event("c", session="s2")])
    assert await store.clear("s1") == 2
    assert _notes(await store.recent(ANA)) == ["c"]
    assert await store.recent(BEN) == []


async def test_clear_narrows_by_agent_run_and_types(store: Any) -> None:
    await store.append(
        [
            _event("a", run_id="r1"),
            _event("b", run_id="r1", type="decision"),
            _event("c", run_id="r2"),
            _event("d", run_id="r1", agent=BEN),
        ]
    )
    assert await store.clear("s1", agent_id=ANA, run_id="r1", types=["decision"]) == 1
    assert _notes(await store.recent(ANA)) == ["a", "c"]
    assert await store.clear("s1", run_id="r1") == 2
    assert _notes(await store.recent(ANA)) == ["c"]
    assert await store.recent(BEN) == []


async def test_clear_is_idempotent_and_says_how_many(store: Any) -> None:
    await store.append([_event("a"), _event("b")])
    assert [await store.clear("s1"), await store.clear("s1")] == [2, 0]


async def test_clear_of_an_empty_run_id_is_refused(store: Any) -> None:
    await store.append([_event("untagged")])
    with pytest.raises(InvalidInputError) as caught:
        await store.clear("s1", run_id="")
    assert caught.value.field == "run_id"
    assert _notes(await store.recent(ANA)) == ["untagged"]


async def test_sequence_numbers_are_never_reused_after_a_clear(store: Any) -> None:
    sent = await store.append([_event("a"), _event("b")])
    await store.clear("s1")
    [after] = await store.append([_event("c")])
    assert (after.epoch, after.seq) > (sent[-1].epoch, sent[-1].seq)


async def _all(store: Any, agent: Any, **how: Any) -> list[str]:
    """The ids of all sessions, read in pages of two."""
    seen: list[str] = []
    page = await store.list_sessions(agent, limit=2, **how)
    while page:
        seen += [session.id for session in page]
        page = await store.list_sessions(agent, limit=2, cursor=page[-1].cursor, **how)
    return seen


def _at(day: int) -> datetime:
    return datetime(2030, 1, day, tzinfo=UTC)


async def test_sessions_are_listed_by_last_activity_in_pages(harness: Harness, store: Any) -> None:
    for at in range(3):
        await store.start_session(ANA, f"s{at}", metadata={"at": at})
        await harness.elapse(1)
    started = await store.start_session(ANA, "quiet")
    await store.append([_event("a", session="s2", occurred_at=_at(1))])
    await store.append([_event("b", session="s0", occurred_at=_at(9))])
    await store.append([_event("c", session="s0", agent=BEN, occurred_at=_at(5))])
    await store.append([_event("d", session="s1", occurred_at=_at(3))])
    listed = await store.list_sessions(ANA, by="last_active_at")
    # The newest of the log counts, not the latest time.
    times = {"s0": _at(5), "s1": _at(3), "s2": _at(1), "quiet": started.started_at}
    order = sorted(times, key=lambda name: times[name], reverse=True)
    assert [(one.id, one.last_active_at) for one in listed] == [(one, times[one]) for one in order]
    assert listed[order.index("s1")].metadata == {"at": 1}
    assert await _all(store, ANA, by="last_active_at") == order
    [first, *_] = await store.list_sessions(ANA, limit=1)
    assert first.last_active_at is None
    for cursor, by in ((first.cursor, "last_active_at"), (listed[0].cursor, "started_at")):
        with pytest.raises(InvalidInputError) as caught:
            await store.list_sessions(ANA, cursor=cursor, by=by)
        assert caught.value.field == "cursor"


async def test_sessions_of_all_agents_are_listed(harness: Harness, store: Any) -> None:
    for at, agent in enumerate((ANA, BEN, ANA, BEN, ANA)):
        await store.start_session(agent, f"s{at}")
        await harness.elapse(1)
    await harness.store(CONTRACT, tenant="other").start_session(ANA, "theirs")
    assert await _all(store, ALL_AGENTS) == ["s4", "s3", "s2", "s1", "s0"]
    await store.append([_event("x", session="s1", occurred_at=datetime(2100, 1, 1, tzinfo=UTC))])
    active = await _all(store, ALL_AGENTS, by="last_active_at")
    assert active == ["s1", "s4", "s3", "s2", "s0"]


async def test_sessions_of_all_agents_are_those_of_the_owner_who_asks_or_those_that_nobody_owns(
    harness: Harness,
) -> None:
    store = harness.store(CONTRACT)
    ana, bob, nobody = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob", ""))
    shared = store.for_owner(OwnerScope("cyd", memory="shared"))
    for name, one in (("ana", ana), ("bob", bob), ("nobody", nobody), ("cyd", shared)):
        await one.append([_event(name), _event(name, session=f"of {name}", agent=BEN)])
    for name, one in (("ana", ana), ("bob", bob), ("nobody", nobody), ("cyd", shared)):
        for by in ("started_at", "last_active_at"):
            assert sorted(await _all(one, ALL_AGENTS, by=by)) == [f"of {name}", "s1"], (name, by)
        assert _notes(await one.get("s1", [e.id for e in await one.recent(ANA)])) == [name]
    assert len(await _all(nobody.any_owner(), ALL_AGENTS)) == 8
    assert await bob.delete_session("s1")
    assert await ana.get_session("s1") is not None
    assert not await bob.delete_session("of ana")
    assert sorted(await _all(ana, ALL_AGENTS)) == ["of ana", "s1"]


async def test_sessions_are_filtered_by_their_metadata(store: Any) -> None:
    await store.start_session(ANA, "s1", metadata={"channel": "mail", "n": 1, "tags": ["a"]})
    await store.start_session(ANA, "s2", metadata={"channel": "chat", "n": 2})
    await store.start_session(BEN, "s3", metadata={"channel": "mail", "n": 3})
    for by in ("started_at", "last_active_at"):
        assert await _all(store, ANA, where={"channel": "mail"}, by=by) == ["s1"]
        found = await _all(store, ALL_AGENTS, where={"channel": "mail"}, by=by)
        assert sorted(found) == ["s1", "s3"]
        assert await _all(store, ALL_AGENTS, where={"n": {"$gt": 1, "$lt": 3}}, by=by) == ["s2"]
        assert await _all(store, ANA, where={"tags": "a"}, by=by) == []
    with pytest.raises(InvalidInputError) as caught:
        await store.list_sessions(ANA, where={"a.b": 1})
    assert caught.value.field.startswith("where")


async def test_a_listing_of_sessions_in_an_unknown_order_is_refused(store: Any) -> None:
    for bad in ("", "id", None, 1, ["started_at"]):
        with pytest.raises(InvalidInputError) as caught:
            await store.list_sessions(ANA, by=bad)
        assert caught.value.field == "by"


async def test_get_returns_events_by_their_ids_in_the_order_of_the_ids(store: Any) -> None:
    a, b, c = await store.append([_event("a"), _event("b", agent=BEN), _event("c")])
    assert await store.get("s1", [c.id, a.id, c.id]) == [c, a]
    assert await store.get("s1", [b.id]) == [b]
    with pytest.raises(InvalidInputError) as caught:
        await store.get("s1", "abc")
    assert caught.value.field == "ids"


async def test_get_of_unknown_ids_is_an_empty_result(store: Any) -> None:
    [a] = await store.append([_event("a")])
    assert await store.get("s1", []) == await store.get("s1", ["nothing"]) == []
    assert await store.get("nowhere", [a.id]) == []
    await store.clear("s1")
    assert await store.get("s1", [a.id]) == []


async def test_get_sees_no_other_session_and_no_other_tenant(harness: Harness, store: Any) -> None:
    [a] = await store.append([_event("a")])
    await store.append([_event("b", session="s2")])
    assert await store.get("s2", [a.id]) == []
    assert await harness.store(CONTRACT, tenant="other").get("s1", [a.id]) == []


async def test_delete_session_removes_the_session_and_its_log_and_nothing_of_another(
    harness: Harness, store: Any
) -> None:
    other = harness.store(CONTRACT, tenant="other")
    for one in (store, other):
        await one.start_session(ANA, "s1", metadata={"channel": "mail"})
        await one.append([_event("a lighthouse"), _event("b", agent=BEN)])
        await one.append([_event("kept", session="s2")])
    assert await store.delete_session("s1")
    assert await store.get_session("s1") is None
    assert [one.id for one in await store.list_sessions(ANA)] == ["s2"]
    assert [one.id for one in await store.list_sessions(ALL_AGENTS, by="last_active_at")] == ["s2"]
    assert _notes(await store.recent(ALL_AGENTS)) == ["kept"]
    assert await store.recent(ANA, session_id="s1") == []
    assert await store.recall(ANA, "lighthouse") == []
    with pytest.raises(NotFoundError):
        await store.end_session("s1")
    await harness.reopen()
    store, other = harness.store(CONTRACT), harness.store(CONTRACT, tenant="other")
    assert await store.get_session("s1") is None
    assert _notes(await other.recent(ALL_AGENTS)) == ["a lighthouse", "b", "kept"]
    assert (await other.get_session("s1")).metadata == {"channel": "mail"}


async def test_delete_session_is_idempotent_and_says_whether_there_was_one(store: Any) -> None:
    assert not await store.delete_session("s1")
    await store.start_session(ANA, "s1")
    assert [await store.delete_session("s1") for _ in range(3)] == [True, False, False]


async def test_a_session_created_again_after_delete_session_has_nothing_of_the_old_one(
    store: Any,
) -> None:
    await store.start_session(ANA, "s1", metadata={"channel": "mail"})
    [old] = await store.append([_event("old")])
    await store.end_session("s1")
    await store.delete_session("s1")
    await store.append([_event("new", agent=BEN)])
    session = await store.get_session("s1")
    assert (session.agent_id, session.metadata, session.ended_at) == (BEN, {}, None)
    assert _notes(await store.recent(ALL_AGENTS, session_id="s1")) == ["new"]
    await store.delete_session("s1")
    started = await store.start_session(ANA, "s1")
    assert (started.agent_id, started.metadata) == (ANA, {})
    await store.append([old])
    assert _notes(await store.recent(ALL_AGENTS, session_id="s1")) == ["old"]


async def test_sequence_numbers_are_never_reused_after_delete_session(store: Any) -> None:
    sent = await store.append([_event("a"), _event("b")])
    await store.delete_session("s1")
    [after] = await store.append([_event("c")])
    assert (after.epoch, after.seq) > (sent[-1].epoch, sent[-1].seq)
    await store.delete_session("s1")
    await store.start_session(ANA, "s1")
    [last] = await store.append([_event("d")])
    assert (last.epoch, last.seq) > (after.epoch, after.seq)


async def test_a_limit_of_none_returns_all_events(store: Any) -> None:
    sent = await store.append([_event(f"{at}") for at in range(150)])
    more = await store.append([_event("b", session="s2"), _event("c", agent=BEN)])
    assert await store.recent(ANA, session_id="s1", limit=None) == sent
    whole = await store.recent(ALL_AGENTS, session_id="s1", limit=None)
    assert whole == [*sent, more[1]]
    assert len(await store.recent(ANA, limit=None)) == 151
    assert len(await store.recent(ALL_AGENTS, limit=None, types=["decision"])) == 0


async def test_after_seq_skips_the_events_up_to_that_position(store: Any) -> None:
    await store.append([_event(f"{at}") for at in range(6)])

    async def after(seq: int, limit: int | None) -> list[str]:
        found = await store.recent(ANA, session_id="s1", limit=limit, after_seq=seq)
        return _notes(found)

    assert await after(0, None) == ["0", "1", "2", "3", "4", "5"]
    assert await after(4, None) == ["4", "5"]
    assert await after(2, 2) == ["4", "5"]
    assert await after(6, None) == await after(1 << 62, 5) == await after(0, 0) == []
    for bad in (-1, 1.5, "1"):
        with pytest.raises(InvalidInputError) as caught:
            await store.recent(ANA, session_id="s1", after_seq=bad)
        assert caught.value.field == "after_seq"


async def test_after_seq_without_a_session_is_refused(store: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await store.recent(ANA, after_seq=1)
    assert caught.value.field == "after_seq"
