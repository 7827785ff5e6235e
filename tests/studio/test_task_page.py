"""What the page of a task says: who did what, what an event changed, what was delivered."""

from __future__ import annotations

import re

import pytest

from holdfast.studio.screens.timeline import changes
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import PushConfig
from holdfast.wiring.state import State
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _task(state: State) -> str:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner="ana")
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    await state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    await state.tasks.append_artifact(claimed.lease, "report.md", [TextBlock("High at 5")])
    await state.tasks.cancel(made.id, by="mei (Studio)")
    return made.id


async def test_each_event_says_what_it_changed(state: State) -> None:
    key = await _task(state)
    events = await state.tasks.events(key)
    assert [changes(event) for event in events] == [
        ["State: Queued"],
        ["Message of the user added"],
        ["State: Working, before that Queued", "Worker: w1, claim 1"],
        ["Step fetch stored"],
        ["9 characters begin report.md"],
        ["Request: cancel"],
    ]
    assert changes(None) == []
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/tasks/{key}?at=4")
        assert "What event 4 changed" in page
        assert "Step fetch stored" in page


async def test_the_page_names_who_asked_for_a_change_to_operators_only(state: State) -> None:
    key = await _task(state)
    async with Visitor(state) as visitor:
        assert "requested by mei (Studio)" in await visitor.page(f"/studio/tasks/{key}")
    async with Visitor.owner(state, "ana") as visitor:
        assert "mei (Studio)" not in await visitor.page(f"/studio/tasks/{key}")


async def test_push_urls_are_shown_without_their_secrets_and_failures_with_the_reason(
    state: State,
) -> None:
    key = await _task(state)
    url = "https://user:word-1@example.org/hook?token=word-2#word-3"
    await state.tasks.upsert_push_config(key, PushConfig("p1", url))
    other = await state.tasks.submit("reader", ChatMessage.user("Tides?"))
    await state.tasks.upsert_push_config(other.id, PushConfig("p2", url))
    await state.tasks.cancel(other.id)
    [entry] = await state.tasks.claim_outbox(limit=9)
    await state.tasks.mark_failed(entry, "the address refused it", max_attempts=1)
    async with Visitor(state) as visitor:
        assert "All delivered" in await visitor.page(f"/studio/tasks/{key}")
        page = await visitor.page(f"/studio/tasks/{other.id}")
        assert "https://example.org/hook" in page
        for secret in ("word-1", "word-2", "word-3"):
            assert secret not in page
        assert "the address refused it" in page
        assert "given up" in page


async def test_a_queued_task_says_what_it_waits_for(state: State) -> None:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    async with Visitor(state) as visitor:
        assert "holdfast worker" in await visitor.page(f"/studio/tasks/{made.id}")
        await state.tasks.claim("w1", agents=["writer"])
        assert "holdfast worker" not in await visitor.page(f"/studio/tasks/{made.id}")


async def test_a_copy_says_how_it_was_made_and_the_original_has_links_to_those_in_its_session(
    state: State,
) -> None:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    await state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    await state.tasks.transition(claimed.lease, "failed", note="no route")
    other = await state.tasks.fork(made.id, 4)
    again = await state.tasks.retry(made.id)
    more = await state.tasks.resume_failed(made.id)
    said = ChatMessage.user("Tides of Brest?")
    changed = await state.tasks.fork(made.id, 4, message=said)
    elsewhere = await state.tasks.submit("writer", said, retry_of=made.id, session_id="s9")
    link = f'<a href="/studio/tasks/{made.id}">'
    async with Visitor(state) as visitor:
        for key, how, kept in (
            (other.id, "fork of", True),
            (again.id, "run again from", False),
            (more.id, "goes on from", True),
            (changed.id, "fork of", True),
            (elsewhere.id, "made from", False),
        ):
            page = await visitor.page(f"/studio/tasks/{key}")
            assert f"<li>{how} {link}" in page
            assert ("<em>from the original task</em>" in page) is kept
            assert "claim 0" not in page
        original = await visitor.page(f"/studio/tasks/{made.id}")
        copies = original.partition("run again as")[2].partition("</li>")[0]
        assert f"/studio/tasks/{again.id}" in copies
        assert f"/studio/tasks/{more.id}" in copies
        assert "from the original task" not in original
        assert (await visitor.page("/studio/tasks")).count("<small>made from") == 5


async def test_a_copy_of_a_task_that_is_not_there_says_only_that(state: State) -> None:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"), owner="ana")
    await state.tasks.cancel(made.id)
    again = await state.tasks.retry(made.id)
    await state.tasks.delete(made.id)
    async with Visitor.owner(state, "ana") as visitor:
        assert "made from" in await visitor.page(f"/studio/tasks/{again.id}")


async def test_the_event_of_a_failure_is_marked(state: State) -> None:
    made = await state.tasks.submit("writer", ChatMessage.user("Tides?"))
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    await state.tasks.transition(claimed.lease, "failed", note="no route")
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/tasks/{made.id}")
        assert re.findall(r'id="e(\d+)" class="[^"]*failed-at', page) == ["4"]
