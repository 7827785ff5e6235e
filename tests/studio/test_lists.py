"""Lists to begin with, and the log of a session at any number of it."""

from __future__ import annotations

import re

import pytest

from holdfast import ChatMessage, Event, State
from holdfast.studio.screens.session_log import MOST_BYTES, WINDOW, read_part
from holdfast.values.graph import Entity
from holdfast.values.identity import ALL_AGENTS, AgentId
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio
PLANNER = AgentId.parse("planner")


async def _log(state: State, count: int, size: int = 0, session: str = "s1") -> None:
    for begin in range(0, count, 100):
        batch = range(begin, min(begin + 100, count))
        await state.episodes.append(
            [Event(PLANNER, session, "note", {"n": at + 1, "x": "x" * size}) for at in batch]
        )


async def test_boards_agents_and_entities_are_listed_to_begin_with(state: State) -> None:
    await state.boards.create_task_list("launch", ["read", "write"])
    await state.for_owner("ana").boards.create_task_list("hers", ["read"])
    await state.graph.add_entities([Entity("Person", {"name": "Ravi"}, "p1")])
    await _log(state, 1)
    async with Visitor(state) as visitor:
        boards = await visitor.page("/studio/boards")
        assert "/studio/boards/launch" in boards
        assert "hers" not in boards
        assert "/studio/boards/hers?owner=ana" in await visitor.page("/studio/boards?owner=ana")
        assert "?from=p1" in await visitor.page("/studio/graph")
        for path in ("/studio/recall", "/studio/facts", "/studio/sessions"):
            assert '<option value="planner">' in await visitor.page(path), path
        assert "?agent=planner" in await visitor.page("/studio/facts")


async def test_the_names_of_agents_to_choose_from_are_those_of_tasks_in_view(state: State) -> None:
    await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner="ana")
    await state.tasks.submit("importer", ChatMessage.user("Prices"))
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/tasks")
        assert '<option value="importer"></option><option value="writer"></option>' in page
    async with Visitor.owner(state, "ana") as visitor:
        page = await visitor.page("/studio/tasks")
        assert '<option value="writer"></option>' in page
        assert "importer" not in page


async def test_lists_have_pages(state: State) -> None:
    names = [f"c{at:03}" for at in range(60)]
    for name in names:
        await state.boards.create_task_list(name, [])
    await state.graph.add_entities([Entity("Word", {}, name) for name in names])
    async with Visitor(state) as visitor:
        for path in ("/studio/boards", "/studio/graph"):
            page = await visitor.page(path)
            assert "c049" in page
            assert "c050" not in page
            more = re.search(r'rel="next" href="(\?[^"]+)"', page)
            assert more
            assert "c059" in await visitor.page(path + more[1])


async def test_of_many_tasks_some_are_counted_and_rare_states_all(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.studio.screens.tasks.COUNTED", 3)
    last = await state.tasks.submit("writer", ChatMessage.user("hello"))
    for _ in range(4):
        await state.tasks.submit("writer", ChatMessage.user("hello"))
    for _ in range(2):
        await state.tasks.cancel((await state.tasks.submit("w", ChatMessage.user("bye"))).id)
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/tasks")
        assert 'Canceled</span><span class="v">2</span>' in page
        assert re.search(r'Queued</span><span class="v">[0-3]<span title="or more">', page)
        assert " or more in all" in page
        words = await visitor.page("/studio/tasks?q=hello")
        assert "5 match" in words
        assert last.id in words


async def test_a_session_is_shown_at_any_number_of_its_log(state: State) -> None:
    await _log(state, 300)
    async with Visitor(state) as visitor:
        now = await visitor.page("/studio/sessions/s1")
        assert 'max="300" value="300"' in now
        assert '{"n": 300' not in now.replace("&#34;", '"').split("Working state")[1]
        early = await visitor.page("/studio/sessions/s1?at=40")
        assert 'id="e1-40" class="ev k-step here"' in early
        assert 'id="e1-41" class="ev k-step later"' in early
        assert 'id="e1-200"' not in early
        for at in ("0", "999999", "-1", "x", "9" * 30):
            assert (await visitor.get(f"/studio/sessions/s1?at={at}")).status_code == 200


async def test_a_part_of_a_log_has_the_events_around_a_number(state: State) -> None:
    await _log(state, 260)
    await state.episodes.clear("s1", types=["none"])
    for at, first, last in ((None, 161, 260), (260, 161, 260), (100, 51, 150), (1, 1, 51)):
        part = await read_part(state.episodes, "s1", at)
        assert (part.events[0].seq, part.events[-1].seq) == (first, last), at
        assert len(part.events) <= WINDOW
    assert (await read_part(state.episodes, "none", 7)).events == []


async def test_a_page_of_a_session_has_a_limit_of_bytes(state: State) -> None:
    await _log(state, 60, size=120_000)
    for type_ in ("", "note"):
        part = await read_part(state.episodes, "s1", None, type_)
        kept = sum(len(one.payload.get("x", "")) for one in part.events)
        assert MOST_BYTES - 200_000 < kept <= MOST_BYTES
        assert part.left_out > 0
        assert part.events[-1].payload["n"] == 60
    async with Visitor(state) as visitor:
        assert len(await visitor.page("/studio/sessions/s1")) < MOST_BYTES


async def test_a_session_is_forked_from_a_number_and_sent_twice_it_is_one_fork(
    state: State,
) -> None:
    await _log(state, 10)
    async with Visitor(state) as visitor:
        for _ in range(2):
            done = await visitor.send("/studio/sessions/s1", "fork", at="4", into="s1-again")
            assert done.headers["location"] == "/studio/sessions/s1-again"
        copied = await state.episodes.recent(ALL_AGENTS, session_id="s1-again")
        assert [one.seq for one in copied] == [1, 2, 3, 4]
        page = await visitor.page("/studio/sessions/s1-again")
        assert "a fork of" in page
        for fields in ({"at": "99", "into": "x"}, {"at": "", "into": "x"}, {"at": "4", "into": ""}):
            assert (await visitor.send("/studio/sessions/s1", "fork", **fields)).status_code == 422
        taken = await visitor.send("/studio/sessions/s1", "fork", at="5", into="s1-again")
        assert taken.status_code == 409
        assert (
            await visitor.send("/studio/sessions/none", "fork", at="1", into="y")
        ).status_code == 404


async def test_an_owner_forks_only_what_is_theirs(state: State) -> None:
    await _log(state.for_owner("bob"), 3)
    async with Visitor.owner(state, "ana") as visitor:
        sent = await visitor.send("/studio/sessions/s1?owner=bob", "fork", at="1", into="mine")
        assert sent.status_code == 404
    async with Visitor.owner(state, "bob") as visitor:
        sent = await visitor.send("/studio/sessions/s1", "fork", at="1", into="again")
        assert sent.status_code == 303
    assert await state.episodes.get_session("again") is None
    assert await state.for_owner("bob").episodes.get_session("again") is not None


async def test_agents_with_facts_come_first_and_link_to_a_namespace_that_they_have(
    state: State,
) -> None:
    for name in ("alpha", "beta", "gamma"):
        await state.episodes.append([Event(AgentId.parse(name), "s1", "note", {"n": 1})])
    await state.long_term.save("gamma", "High tide at five")
    await state.long_term.save("beta", "Low tide at six", namespace="tides")
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/facts")
    chips = re.findall(r'class="chip" href="([^"]+)">([^<]+?)( <small>no facts</small>)?</a>', page)
    assert chips == [
        ("?agent=beta&amp;namespace=tides", "beta", ""),
        ("?agent=gamma", "gamma", ""),
        ("?agent=alpha", "alpha", " <small>no facts</small>"),
    ]


async def test_an_operator_is_shown_whose_sessions_there_may_be(state: State) -> None:
    await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner="ana")
    await state.for_owner("ana").episodes.append([Event(PLANNER, "hers", "note", {"n": 1})])
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/sessions")
        assert "Only sessions that nobody owns are shown" in page
        assert 'href="?owner=ana">ana</a>' in page
        assert "hers" in await visitor.page("/studio/sessions?owner=ana")
    async with Visitor.owner(state, "bob") as visitor:
        assert "ana" not in (await visitor.page("/studio/sessions")).partition("<main")[2]


async def test_the_pages_of_boards_count_open_cards_alike(state: State) -> None:
    board = await state.boards.create_task_list("c1", [str(at) for at in range(4)])
    for card, status in zip(board.tasks, ("succeeded", "abandoned", "failed"), strict=False):
        await state.boards.update_status(board.id, card.id, status)
    async with Visitor(state) as visitor:
        listed = await visitor.page("/studio/boards")
        cells = re.findall(r'data-th="(Open cards|Cards)" class="r num">(\d+)<', listed)
        assert cells == [("Open cards", "2"), ("Cards", "4")]
        assert "2 of 4 open" in await visitor.page("/studio/boards/c1")
