"""Memory in Studio: tool calls with their results, neighbours, saved tests, histories of facts."""

from __future__ import annotations

import pytest

from holdfast import Event
from holdfast.studio.screens.session_rows import rows_of
from holdfast.values.content import ChatMessage, TextBlock, ToolResultBlock, ToolUseBlock
from holdfast.values.identity import AgentId
from holdfast.wiring.state import State
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = AgentId.parse("planner")


def _event(type_: str, at: int, **payload: object) -> Event:
    return Event(AGENT, "s1", type_, payload, id=f"e{at}", epoch=1, seq=at)


async def test_a_call_and_its_result_are_one_row() -> None:
    rows = rows_of(
        [
            _event("tool_call", 1, name="logs", id="c1", arguments={"path": "/export"}),
            _event("tool_call", 2, name="ping", arguments={"host": "a"}),
            _event("tool_result", 3, content="pong"),
            _event("decision", 4, text="wait"),
            _event("tool_result", 5, id="c1", content="314 timeouts"),
            _event("tool_result", 6, content="of nobody"),
        ]
    )
    assert [row.numbers for row in rows] == [[1, 5], [2, 3], [4], [6]]
    [logs], [ping] = rows[0].tools, rows[1].tools
    assert (logs.name, logs.input, logs.result) == ("logs", {"path": "/export"}, "314 timeouts")
    assert (ping.name, ping.result) == ("ping", "pong")
    assert rows[3].tools == []


async def test_tool_calls_in_messages_are_one_row_with_their_results() -> None:
    call = ChatMessage(
        "assistant", [TextBlock("I look."), ToolUseBlock("c1", "search", {"q": "tide"})]
    )
    answer = ChatMessage("tool", [ToolResultBlock("c1", [TextBlock("At five")], is_error=True)])
    unknown = ChatMessage("tool", [ToolResultBlock("c9", [TextBlock("At six")])])
    events = [Event.of_message(AGENT, "s1", one) for one in (call, answer, unknown)]
    first, last = rows_of(events)
    [tool] = first.tools
    assert (first.text, tool.name, tool.result, tool.is_error) == (
        "I look.",
        "search",
        "At five",
        True,
    )
    assert last.parts == [("tool result", "At six")]


async def test_the_log_shows_calls_with_results_and_a_position_may_have_its_epoch(
    state: State,
) -> None:
    await state.episodes.append(
        [
            Event(AGENT, "s1", "tool_call", {"name": "logs", "arguments": {"path": "/x"}}),
            Event(AGENT, "s1", "tool_result", {"content": "314 timeouts"}),
        ]
    )
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/sessions/s1")
        assert "returned" in page
        assert "Forget the result" in page
        assert ">1, 2</a>" in page
        assert "event 1" in await visitor.page("/studio/sessions/s1?at=1.1")


async def test_sessions_are_found_by_what_was_said_in_them(state: State) -> None:
    for session, text in (("s1", "the zeppelin lands"), ("s2", "nothing")):
        await state.episodes.start_session(AGENT, session)
        await state.episodes.append([Event(AGENT, session, "note", {"text": text})])
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/sessions?q=zeppelin")
        assert "/studio/sessions/s1" in page
        assert "the zeppelin lands" in page
        assert "/studio/sessions/s2" not in page
        assert "/studio/sessions/s2" in await visitor.page("/studio/sessions?q=s2")
        assert "has these words" in await visitor.page("/studio/sessions?q=submarine")


async def test_a_hit_shows_its_neighbours_and_the_filters_narrow_the_search(state: State) -> None:
    texts = ["one", "two", "three", "the zeppelin", "five", "six", "seven", "eight"]
    made = await state.episodes.append(
        [Event(AGENT, "s1", "note", {"text": text}) for text in texts]
    )
    async with Visitor(state) as visitor:
        path = "/studio/recall?agent=planner&q=zeppelin"
        page = await visitor.page(f"{path}&near={made[3].id}")
        near = page[page.index('<ol class="near">') :].partition("</ol>")[0]
        assert [text for text in texts if text in near] == texts[:7]
        assert '<ol class="near">' not in await visitor.page(path)
        assert "Nothing was found" in await visitor.page(f"{path}&types=decision")
        assert "1</b> memories" in await visitor.page(f"{path}&types=&since=day")


async def test_a_test_is_saved_once_run_and_deleted(state: State) -> None:
    made = await state.episodes.append(
        [Event(AGENT, "s1", "note", {"text": f"the zeppelin {at}"}) for at in range(3)]
    )
    async with Visitor(state) as visitor:
        fields = {"agent": "planner", "question": "zeppelin 2", "event": made[2].id}
        for _ in range(2):
            response = await visitor.send("/studio/recall/tests", "save-test", **fields)
            assert response.status_code == 303
        await visitor.send("/studio/recall/tests", "save-test", **{**fields, "event": "gone"})
        page = await visitor.page("/studio/recall/tests")
        assert "1 of 2 find their event" in page
        assert "not found" in page
        empty = await visitor.send("/studio/recall/tests", "save-test", **{**fields, "event": ""})
        assert empty.status_code == 422
        keys = [one.split('"')[0] for one in page.split('name="test" value="')[1:]]
        assert len(keys) == 2
        for key in keys:
            await visitor.send("/studio/recall/tests", "delete-test", test=key)
        again = await visitor.send("/studio/recall/tests", "delete-test", test=keys[0])
        assert again.status_code == 404
        assert "No test yet" in await visitor.page("/studio/recall/tests")


async def test_an_owner_neither_sees_nor_deletes_the_tests_of_another(state: State) -> None:
    bob = {"agent": "planner", "question": "the secret of bob", "event": "e1"}
    async with Visitor.owner(state, "bob") as visitor:
        await visitor.send("/studio/recall/tests", "save-test", **bob)
        page = await visitor.page("/studio/recall/tests")
        assert "the secret of bob" in page
        key = page.split('name="test" value="')[1].split('"')[0]
    async with Visitor.owner(state, "ana") as visitor:
        assert "the secret of bob" not in await visitor.page("/studio/recall/tests?owner=bob")
        response = await visitor.send("/studio/recall/tests?owner=bob", "delete-test", test=key)
        assert response.status_code == 404
    async with Visitor(state) as visitor:
        assert "the secret of bob" in await visitor.page("/studio/recall/tests?owner=bob")


async def test_the_history_of_a_fact_has_what_it_replaced_and_what_replaced_it(
    state: State,
) -> None:
    first = await state.long_term.save(AGENT, "90 seconds", source="a mail")
    second = await state.long_term.update(AGENT, first, "60 seconds")
    await state.long_term.update(AGENT, second, "30 seconds")
    await state.long_term.save(AGENT, "Mei writes")
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/facts?agent=planner&history={second}")
        chain = page[page.index('<ol class="chain">') :].partition("</ol>")[0]
        places = [chain.index(f"{number} seconds") for number in (90, 60, 30)]
        assert places == sorted(places)
        assert "Mei writes" not in chain
        assert "a mail" in chain
        missing = await visitor.page("/studio/facts?agent=planner&history=none")
        assert "is not there any more" in missing
        topic = await visitor.page("/studio/facts?agent=planner&topic=nothing")
        assert "Mei writes" not in topic


async def test_a_key_is_rotated(state: State) -> None:
    made = await state.keys.create("ana")
    async with Visitor(state) as visitor:
        response = await visitor.send("/studio/keys", "rotate", key=made.key.id)
        assert response.status_code == 200
        assert "shown this once" in response.text
        assert await state.keys.verify(made.text) is None
        again = await visitor.send("/studio/keys", "rotate", key=made.key.id)
        assert again.status_code == 404
        await visitor.send("/studio/keys", "delete", key=made.key.id)
        assert made.key.id not in await visitor.page("/studio/keys")
        gone = await visitor.send("/studio/keys", "delete", key=made.key.id)
        assert gone.status_code == 404


async def test_matched_words_are_shown_as_they_were_asked(state: State) -> None:
    agent = AgentId.parse("planner")
    await state.episodes.append([Event(agent, "s1", "note", {"text": "Two databases were moved"})])
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/recall?agent=planner&q=Which+database+was+moved")
    words = page.partition("matched words</dt><dd>")[2].partition("</dd>")[0]
    assert sorted(words.split(", ")) == ["database", "moved"]
