"""The promises of ``EpisodicMemory``: questions over payloads, and over all agents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.filter_cases import TRUTH
from holdfast.testing.harness import Harness
from holdfast.testing.test_episodes_recall import ByTopic
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event
from holdfast.values.filters import And, Equals, Filter, Not, Or, matches, parse
from holdfast.values.identity import ALL_AGENTS, AgentId
from holdfast.values.limits import Limits
from holdfast.values.owners import UNASSIGNED

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA, BEN = AgentId("writer", "ana"), AgentId("", "ben")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
EVER = (NOON - timedelta(days=1), NOON + timedelta(days=1))


def _event(
    note: str, *, agent: AgentId = ANA, session: str = "s1", minute: int = 0, **payload: Any
) -> Event:
    when = NOON + timedelta(minutes=minute)
    return Event(agent, session, "observation", {"note": note, **payload}, occurred_at=when)


def _notes(events: list[Event]) -> list[str]:
    return [event.payload["note"] for event in events]


async def _asked(store: Any, agent: Any, where: Any, **how: Any) -> set[tuple[str, ...]]:
    """What every kind of question finds: it must be the same."""
    hits = await store.recall(agent, "tide", limit=100, where=where, **how)
    blank = await store.recall(agent, " ", limit=100, where=where, **how)
    found = [
        await store.recent(agent, limit=100, where=where, **how),
        await store.between(agent, *EVER, where=where, **how),
        [hit.event for hit in hits],
        [hit.event for hit in blank],
    ]
    return {tuple(sorted(_notes(one))) for one in found}


async def test_where_keeps_only_the_events_whose_payload_passes_the_filter(store: Any) -> None:
    await store.append(
        [
            _event("tide 1", status="failed", cost=3),
            _event("tide 2", status="done", cost=9),
            _event("tide 3", session="s2", status="failed", cost=12.5),
            _event("tide 4", status=None),
            _event("tide 5", agent=BEN, status="failed"),
        ]
    )
    failed = {"status": "failed"}
    assert await _asked(store, ANA, failed) == {("tide 1", "tide 3")}
    assert await _asked(store, ANA, failed, session_id="s1") == {("tide 1",)}
    assert await _asked(store, ANA, failed, types=["decision"]) == {()}
    assert await _asked(store, ANA, {"cost": {"$gte": 9}}) == {("tide 2", "tide 3")}
    assert await _asked(store, ANA, {"status": {"$ne": "failed"}}) == {("tide 2", "tide 4")}
    assert await _asked(store, ANA, {"cost": {"$exists": False}}) == {("tide 4",)}
    every = {("tide 1", "tide 2", "tide 3", "tide 4")}
    assert await _asked(store, ANA, {}) == await _asked(store, ANA, None) == every
    message = ChatMessage.user("the tide is low", id="m1", created_at=NOON)
    await store.append([Event.of_message(BEN, "s3", message)])
    [said] = await store.recent(BEN, where={"role": "user"})
    assert said.id == "m1"


async def test_where_sees_the_scalars_at_the_top_level_of_a_payload_and_nothing_else(
    store: Any,
) -> None:
    cases = [case for section in TRUTH.values() for case in section]
    payloads = [
        dict(one) for one in {repr(case.metadata): case.metadata for case in cases}.values()
    ]
    await store.append([Event(ANA, f"t{at}", "note", one) for at, one in enumerate(payloads)])
    asked = 0
    for case in cases:
        session = f"t{[repr(one) for one in payloads].index(repr(case.metadata))}"
        asks = _conditions(parse(case.filter))
        if any(len(one.path) > 1 or _has_parts(one) for one in asks):
            with pytest.raises(InvalidInputError):
                await store.recent(ANA, session_id=session, where=case.filter)
            continue
        seen = {
            key: value
            for key, value in case.metadata.items()
            if not isinstance(value, (dict, list))
        }
        found = await store.recent(ANA, session_id=session, where=case.filter)
        assert bool(found) == matches(parse(case.filter), seen), case
        asked += 1
    assert asked > 100


def _conditions(filter: Filter) -> list[Any]:
    match filter:
        case And(parts) | Or(parts):
            return [one for part in parts for one in _conditions(part)]
        case Not(part):
            return _conditions(part)
        case _:
            return [filter]


def _has_parts(condition: Any) -> bool:
    return isinstance(condition, Equals) and isinstance(condition.value, (dict, list))


async def test_where_does_not_see_a_text_of_more_than_256_bytes(store: Any) -> None:
    kept = ["x" * 256, "é" * 128, "\x00" * 256, "\x01\x00" * 128, '"\\' * 128]
    lost = ["x" * 257, "é" * 128 + "x", "\x00" * 257, "\x01\x00" * 128 + "x", '"\\' * 128 + "x"]
    await store.append([_event(f"tide kept {at}", text=one) for at, one in enumerate(kept)])
    await store.append([_event(f"tide lost {at}", text=one) for at, one in enumerate(lost)])
    gone = {tuple(f"tide lost {at}" for at in range(len(lost)))}
    assert await _asked(store, ANA, {"text": {"$exists": False}}) == gone
    for at, one in enumerate(kept):
        assert await _asked(store, ANA, {"text": one}) == {(f"tide kept {at}",)}
    for one in lost:
        with pytest.raises(InvalidInputError, match="up to 256 bytes") as caught:
            await store.recent(ANA, where={"$or": [{"text": {"$in": [one]}}]})
        assert caught.value.field == "where.text"
    assert len(await store.recent(ANA, limit=100)) == len(kept) + len(lost)


async def test_where_on_a_nested_key_is_refused_and_the_error_says_what_can_be_filtered(
    store: Any,
) -> None:
    await store.append(
        [Event(ANA, "s1", "note", {"note": "tide", "a.b": 1, "a": {"b": 2}}, occurred_at=NOON)]
    )
    for where in ({"a.b": 2}, {"$not": {"a.b": {"$gt": 1}}}, {"$or": [{"a.b": {"$exists": True}}]}):
        for ask in (
            store.recent(ANA, where=where),
            store.between(ALL_AGENTS, *EVER, where=where),
            store.recall(ANA, "tide", where=where),
            store.recall(ANA, [1.0], where=where),
        ):
            with pytest.raises(InvalidInputError, match="top level of its payload") as caught:
                await ask
            assert caught.value.field == "where.a.b"
    assert await _asked(store, ANA, {"a\\.b": 1}) == {("tide",)}
    with pytest.raises(InvalidInputError) as refused:
        await store.recent(ANA, where={"k": {"$near": 1}})
    assert refused.value.field == "where.k.$near"


async def test_where_has_the_limits_of_every_filter(store: Any) -> None:
    store.use_limits(Limits(filter_terms=3))
    await store.recent(ANA, where={"k": [1, 2, 3]})
    for ask in (
        store.recent(ANA, where={"k": [1, 2, 3, 4]}),
        store.between(ANA, *EVER, where={"k": {"$nin": [1, 2, 3, 4]}}),
        store.recall(ANA, "tide", where={"$or": [{"k": one} for one in range(4)]}),
    ):
        with pytest.raises(InvalidInputError, match="at most 3 are allowed") as caught:
            await ask
        assert caught.value.field == "where"


async def test_recent_returns_as_many_as_asked_for_whenever_so_many_pass(store: Any) -> None:
    await store.append([_event(f"tide {at:03}", minute=at, odd=at % 2 == 1) for at in range(200)])
    odd = [f"tide {at:03}" for at in range(1, 200, 2)]
    for session in (None, "s1"):
        how = {"session_id": session, "where": {"odd": True}}
        assert _notes(await store.recent(ANA, limit=60, **how)) == odd[-60:]
        first = await store.between(ANA, *EVER, limit=60, **how)
        assert _notes(first) == odd[:60]
        rest = await store.between(ANA, *EVER, limit=60, cursor=first[-1].cursor, **how)
        assert _notes(rest) == odd[60:]
        assert len(await store.recall(ANA, "tide", limit=60, **how)) == 60


async def test_all_agents_are_asked_only_by_name(store: Any) -> None:
    await store.append([_event("tide"), _event("tide", agent=AgentId("", "ALL_AGENTS"))])
    assert len(await store.recent("ALL_AGENTS")) == 1
    assert len(await store.recent(ALL_AGENTS)) == 2
    for nobody in (None, "", "*", ALL_AGENTS.value):
        try:
            assert await store.recent(nobody) == []
        except InvalidInputError as error:
            assert error.field == "agent_id"  # noqa: PT017 - one of the two
    with pytest.raises(InvalidInputError):
        await store.start_session(ALL_AGENTS)
    with pytest.raises(InvalidInputError):
        await store.clear("s1", agent_id=ALL_AGENTS)


async def test_recent_and_between_of_all_agents_hold_what_every_agent_did(store: Any) -> None:
    await store.append(
        [
            _event("tide 3", minute=3),
            _event("tide 1", agent=BEN, minute=1, done=True),
            _event("tide 2", agent=BEN, session="s2", minute=2),
            _event("tide 4", session="s2", minute=4, done=True),
        ]
    )
    by_time = ["tide 1", "tide 2", "tide 3", "tide 4"]
    assert _notes(await store.recent(ALL_AGENTS)) == by_time
    assert _notes(await store.recent(ALL_AGENTS, limit=2)) == by_time[2:]
    assert _notes(await store.between(ALL_AGENTS, *EVER)) == by_time
    span = (NOON + timedelta(minutes=2), NOON + timedelta(minutes=4))
    assert _notes(await store.between(ALL_AGENTS, *span)) == ["tide 2", "tide 3"]
    # In a session by place, as for one agent.
    assert _notes(await store.recent(ALL_AGENTS, session_id="s1")) == ["tide 3", "tide 1"]
    assert _notes(await store.between(ALL_AGENTS, *EVER, session_id="s2")) == ["tide 2", "tide 4"]
    assert _notes(await store.recent(ALL_AGENTS, where={"done": True})) == ["tide 1", "tide 4"]
    assert await store.recent(ALL_AGENTS, types=["decision"]) == []
    assert {event.agent_id for event in await store.recent(ALL_AGENTS)} == {ANA, BEN}


async def test_pages_of_all_agents_miss_nothing(store: Any) -> None:
    agents = [AgentId("", f"a{at}") for at in range(5)]
    sent = [
        # Many at the same time, in sessions whose ids decide.
        _event(f"{at}", agent=agents[at % 5], session=f"s{at % 7}", minute=at // 20)
        for at in range(100)
    ]
    await store.append(sent)
    for where in (None, {"note": {"$ne": "13"}}):
        found: list[Event] = []
        while page := await store.between(
            ALL_AGENTS, *EVER, limit=9, cursor=found[-1].cursor if found else None, where=where
        ):
            assert len(page) <= 9
            found += page
        assert sorted(map(int, _notes(found))) == [at for at in range(100) if not where or at != 13]
        order = [(one.occurred_at, one.session_id, one.seq) for one in found]
        assert order == sorted(order)


async def test_all_agents_are_those_of_the_owner_who_asks_or_those_that_nobody_owns(
    harness: Harness,
) -> None:
    store = harness.store("episodes")
    others = harness.store("episodes", tenant="other")
    ana, bob = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    shared = store.for_owner(OwnerScope("cyd", memory="shared"))
    sharer = store.for_owner(OwnerScope("dan", memory="shared"))
    nobody = store.for_owner(OwnerScope(""))
    for note, one in (("other", others), ("ana", ana), ("bob", bob), ("nobody", nobody)):
        await one.append([_event(f"tide {note}"), _event(f"tide {note}", agent=BEN, session="s2")])
    for note, one in (("cyd", shared), ("dan", sharer)):
        await one.append([_event(f"tide {note}"), _event(f"tide {note}", agent=BEN, session="s2")])
    for note, one in (
        *(("other", others), ("ana", ana), ("bob", bob), ("cyd", shared), ("dan", sharer)),
        ("nobody", nobody),
    ):
        mine = f"tide {note}"
        assert await _asked(one, ALL_AGENTS, None) == {(mine, mine)}, note
        assert await _asked(one, ALL_AGENTS, {"note": mine}) == {(mine, mine)}, note
        assert await _asked(one, ALL_AGENTS, {"note": "tide bob"}, session_id="s2") == (
            {("tide bob",)} if note == "bob" else {()}
        )
        found = await one.recent(ALL_AGENTS)
        assert {event.agent_id for event in found} == {ANA, BEN}
        assert {event.session_id for event in found} == {"s1", "s2"}
    # A stored name of another owner's session is refused.
    stolen = OwnerScope("bob").id("session_id", "s1")
    for one in (ana, shared):
        with pytest.raises(InvalidInputError, match="session_id"):
            await one.recent(ALL_AGENTS, session_id=stolen)


async def test_all_agents_of_any_owner_are_those_of_the_tenant(harness: Harness) -> None:
    store = harness.store("episodes").for_owner(OwnerScope(""))
    every = store.any_owner()
    await store.append([_event("tide nobody", minute=1), _event("tide nobody", agent=BEN)])
    for memory in ("owner", "shared"):
        ana = store.for_owner(OwnerScope("ana", memory=memory))
        await ana.append([_event(f"tide ana {memory}", session=memory, agent=BEN)])
        mine = await _asked(ana, ALL_AGENTS, None)
        assert await _asked(ana.any_owner(), ALL_AGENTS, None) == mine
    # Sessions that wait for an owner are nobody's to read.
    waiting = AgentId.parse(f"{UNASSIGNED}ben")
    await store.append([_event("tide unassigned", agent=waiting, session=f"{UNASSIGNED}s1")])
    assert await _asked(store, ALL_AGENTS, None) == {("tide nobody", "tide nobody")}
    assert await _asked(store, ALL_AGENTS, {"note": "tide ana shared"}) == {()}
    whole = ("tide ana owner", "tide ana shared", "tide nobody", "tide nobody", "tide unassigned")
    assert await _asked(every, ALL_AGENTS, None) == {whole}
    assert await _asked(every, ALL_AGENTS, {"note": "tide ana shared"}) == {("tide ana shared",)}
    stored = OwnerScope("ana").id("session_id", "owner")
    assert _notes(await every.recent(ALL_AGENTS, session_id=stored)) == ["tide ana owner"]
    with pytest.raises(InvalidInputError, match="session_id"):
        await store.recent(ALL_AGENTS, session_id=stored)
    others = harness.store("episodes", tenant="other").any_owner()
    assert await _asked(others, ALL_AGENTS, None) == {()}


async def test_recall_of_all_agents_finds_what_any_of_them_said(store: Any) -> None:
    await store.append(
        [_event("the tide is low", a=1), _event("the moon is full", agent=BEN)],
        embeddings=[[1.0, 0.0], [0.0, 1.0]],
    )
    await store.append([_event("the tide turns", agent=BEN, session="s2", minute=1, a=2)])
    hits = await store.recall(ALL_AGENTS, "tide")
    assert sorted(_notes([hit.event for hit in hits])) == ["the tide is low", "the tide turns"]
    assert max(hit.score for hit in hits) == 1.0
    assert {hit.found_by for hit in hits} == {("lexical",)}
    [hit] = await store.recall(ALL_AGENTS, "tide", limit=1)
    assert hit == hits[0]
    [hit] = await store.recall(ALL_AGENTS, "tide", where={"a": 2})
    assert hit.event.agent_id == BEN
    near = await store.recall(ALL_AGENTS, [0.1, 1.0])
    assert _notes([hit.event for hit in near]) == ["the moon is full", "the tide is low"]
    [hit] = await store.recall(ALL_AGENTS, [0.1, 1.0], where={"a": {"$exists": True}})
    assert hit.event.agent_id == ANA
    blank = await store.recall(ALL_AGENTS, "", limit=1)
    assert _notes([hit.event for hit in blank]) == ["the tide turns"]
    await store.clear("s2")
    assert _notes([hit.event for hit in await store.recall(ALL_AGENTS, "turns")]) == []


async def test_recall_of_all_agents_weighs_a_word_by_what_each_agent_said(store: Any) -> None:
    await store.append([_event(f"tide number {at}") for at in range(9)])
    await store.append([_event(f"moon number {at}", agent=BEN) for at in range(9)])
    await store.append([_event("tide number one", agent=BEN), _event("moon number one")])
    hits = await store.recall(ALL_AGENTS, "tide", limit=20)
    # A word that an agent says all the time weighs less than one it said once.
    assert (hits[0].event.agent_id, len(hits)) == (BEN, 10)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].score == 1.0
    assert hits[1].score < 0.5
    alone = await store.recall(ANA, "tide", limit=20)
    words = [hit.scores["lexical"] for hit in alone]
    assert [hit.scores["lexical"] for hit in hits[1:]] == words


async def test_recall_of_all_agents_with_an_embedder_finds_by_meaning_what_shares_no_word(
    harness: Harness,
) -> None:
    store = harness.store("episodes", embedder=ByTopic())
    for agent in (ANA, BEN):
        await store.append(
            [
                _event("the harbour is full", agent=agent, by=agent.key),
                _event("the meadow is green", agent=agent, by=agent.key),
            ]
        )
    hits = await store.recall(ALL_AGENTS, "ocean", limit=2)
    assert {hit.event.agent_id for hit in hits} == {ANA, BEN}
    assert {(hit.event.payload["note"], hit.found_by, hit.degraded) for hit in hits} == {
        ("the harbour is full", ("semantic",), "")
    }
    [hit] = await store.recall(ALL_AGENTS, "ocean", limit=1, where={"by": "ben"})
    assert (hit.event.agent_id, hit.event.payload["note"]) == (BEN, "the harbour is full")
    # What was written since is found too, whoever wrote it.
    await store.append([_event("a ship", agent=AgentId("", "cyd"), session="s2")])
    hits = await store.recall(ALL_AGENTS, "ocean", limit=3)
    assert "a ship" in _notes([hit.event for hit in hits])


async def test_recall_of_more_than_100_agents_is_refused_and_the_error_names_the_fix(
    store: Any,
) -> None:
    agents = [AgentId("crowd", f"a{at}") for at in range(101)]
    await store.append(
        [_event("tide", agent=agent, session=f"s{at}") for at, agent in enumerate(agents[:100])]
    )
    assert len(await store.recall(ALL_AGENTS, "tide", limit=200)) == 100
    await store.append([_event("tide", agent=agents[100], session="s100")])
    for ask in (
        store.recall(ALL_AGENTS, "tide"),
        store.recall(ALL_AGENTS, "volcano", session_id="s1"),
        store.recall(ALL_AGENTS, [1.0, 2.0]),
    ):
        with pytest.raises(InvalidInputError, match="name one agent at a time") as caught:
            await ask
        assert caught.value.field == "agent_id"
    assert len(await store.recall(ALL_AGENTS, " ", limit=200)) == 101
    assert len(await store.recent(ALL_AGENTS, limit=200)) == 101
    # An agent of which nothing is left does not count.
    await store.clear("s7")
    assert len(await store.recall(ALL_AGENTS, "tide", limit=200)) == 100
