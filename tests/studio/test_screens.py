"""What the screens show, of an empty state and of a small world, with hostile content too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

import holdfast
from holdfast import ChatMessage, Event, State
from holdfast.content import DataBlock
from holdfast.studio.app import SCREENS
from holdfast.studio.demo_world import fill
from holdfast.studio.pages import FOLDER
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from holdfast.values.tasks.events import StepKey
from tests.studio.visiting import Visitor

HOSTILE = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    '"><svg onload=window.pwned=1>',
    "' onmouseover='window.pwned=1",
    "{{ 7777 * 7777 }}{% raw %}",
    "javascript:window.pwned=1",
    "</textarea><script>window.pwned=1</script>",
    "</title></script><base href=//evil.example>",
)
EMPTY = {
    "/studio": "Nobody waits for you",
    "/studio/tasks": "There is no task yet",
    "/studio/boards": "No session has a board",
    "/studio/boards/c1": "This session has no board",
    "/studio/sessions": "No session",
    "/studio/recall": "Nothing asked yet",
    "/studio/recall?agent=planner&q=tides": "Nothing was found",
    "/studio/recall/tests": "No test yet",
    "/studio/facts": "Name an agent",
    "/studio/facts?agent=planner": "No fact here",
    "/studio/graph": "No entity yet",
    "/studio/search": "by words or by an id",
    "/studio/tenants": "Those that have data",
    "/studio/search?q=nobody": "Nothing was found",
    "/studio/graph?q=nobody": "No entity has this name",
    "/studio/health": "The engines are",
    "/studio/dead-letters": "No dead letters",
    "/studio/keys": "There is no key",
    "/studio/erase": "Nothing was erased yet",
    "/studio/erase?subject=ana": "Nothing is stored of this subject",
}
WORLD = {
    "/studio": "Refund 1,240.00 EUR",
    "/studio/tasks": "&#39;n/a&#39; is not a price",
    "/studio/tasks?state=failed": "importer",
    "/studio/tasks?agent=booker&since=day": "booker",
    "/studio/boards": "launch-week",
    "/studio/boards/launch-week": "waits for the firewall rule",
    "/studio/sessions": "support",
    "/studio/sessions?agent=planner": "budget",
    "/studio/sessions/launch-week": "Tuesday 05:00",
    "/studio/sessions/support?type=decision": "Run the nightly vacuum at 04:00",
    "/studio/recall?agent=planner&q=vacuum": "<mark>vacuum</mark>",
    "/studio/recall?agent=planner&session=launch-week&q=database": "tokens",
    "/studio/facts?agent=planner": "The failover objective is 60 seconds.",
    "/studio/facts?agent=planner&superseded=on": "The failover objective is 90 seconds.",
    "/studio/facts?agent=planner&q=vacuum": "The nightly vacuum runs",
    "/studio/graph?q=launch": "writes_for",
    "/studio/graph?from=mei&to=offer+a": "steps trail",
    "/studio/graph?from=ravi&hide=launch": "1 hidden",
    "/studio/search?q=launch": "Entities",
    "/studio/search?q=launch-week": "Sessions",
    "/studio/search?q=vacuum": "Memories",
    "/studio/search?q=failover+objective": "Facts",
    "/studio/graph?from=ravi&depth=2&type=leads": "leads",
}


class _Checked(HTMLParser):
    """The elements and attributes of a page that could run a script or load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        inside = values.get("src", "/studio/") or ""
        if tag in {"script", "img", "iframe", "object", "embed"} and not inside.startswith(
            "/studio/static/"
        ):
            self.found.append(f"{tag} {values}")
        if tag in {"base", "style"}:
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            if name in {"href", "action", "formaction"} and not (value or "").startswith(
                ("/studio", "?", "#")
            ):
                self.found.append(f"{tag} {name}={value}")


def dangers(page: str) -> list[str]:
    """What in a page could run a script or lead elsewhere."""
    checked = _Checked()
    checked.feed(page)
    return checked.found


@pytest.mark.asyncio
@pytest.mark.parametrize(("path", "text"), EMPTY.items())
async def test_an_empty_screen_says_what_would_be_there(state: State, path: str, text: str) -> None:
    async with Visitor(state) as visitor:
        assert text in await visitor.page(path)


@pytest_asyncio.fixture(scope="module")
async def world() -> AsyncIterator[tuple[State, str]]:
    """A small world in memory, and the task that was taken over."""
    async with holdfast.open("memory:") as opened:
        yield opened, await fill(opened, pace=0)


@pytest.mark.asyncio
@pytest.mark.parametrize(("path", "text"), WORLD.items())
async def test_a_screen_shows_the_world(world: tuple[State, str], path: str, text: str) -> None:
    async with Visitor(world[0]) as visitor:
        page = await visitor.page(path)
    assert text in page
    assert not dangers(page)


@pytest.mark.asyncio
async def test_a_task_shows_the_takeover_and_what_was_before_it(world: tuple[State, str]) -> None:
    state, id_ = world
    events = await state.tasks.events(id_)
    lost = next(one.seq for one in events if str(one.by) == "recovery")
    async with Visitor(state) as visitor:
        now = await visitor.page(f"/studio/tasks/{id_}")
        then = await visitor.page(f"/studio/tasks/{id_}?at={lost}")
    assert "1</b> takeover" in now
    assert "As it is now" in now
    assert "Sent: offer A" in now
    assert f"As it was after event {lost}" in then
    assert "Sent: offer A" not in then.partition("As it was after")[2]
    assert "publish" in now.partition("Steps stored")[2]
    assert "publish" not in then.partition("Steps stored")[2]


@pytest.mark.asyncio
@pytest.mark.parametrize("at", ["0", "-1", "x", "9" * 30, "²"])
async def test_an_odd_event_number_is_the_present(world: tuple[State, str], at: str) -> None:
    async with Visitor(world[0]) as visitor:
        page = await visitor.page(f"/studio/tasks/{world[1]}?at={quote(at)}")
    assert "As it is now" in page or "event 1<" in page


@pytest.mark.asyncio
@pytest.mark.parametrize("show", ["steps", "messages", "problems"])
async def test_the_feed_shows_a_part(world: tuple[State, str], show: str) -> None:
    async with Visitor(world[0]) as visitor:
        page = await visitor.page(f"/studio/tasks/{world[1]}?show={show}")
    feed = page.partition('<ol class="feed">')[2].partition("</ol>")[0]
    kinds = {"steps": {"step", "artifact"}, "messages": {"message"}, "problems": {"transition"}}
    assert {one.split('"')[0].split()[0] for one in feed.split("ev k-")[1:]} == kinds[show]


@pytest.mark.asyncio
async def test_a_long_task_shows_a_window_of_its_events(state: State) -> None:
    task = await state.tasks.submit("writer", ChatMessage.user("hello"))
    [claimed] = await state.tasks.claim("w1", agents=["writer"])
    for at in range(600):
        await state.tasks.record_step(claimed.lease, StepKey(f"s{at}"), at)
    async with Visitor(state) as visitor:
        newest = await visitor.page(f"/studio/tasks/{task.id}")
        middle = await visitor.page(f"/studio/tasks/{task.id}?at=300")
    assert newest.count('class="ev ') == 200
    assert "Events 201 to 400 of 603" in middle
    assert "<b>s599</b>" in newest
    assert "<b>s599</b>" not in middle


@pytest.mark.asyncio
@pytest.mark.parametrize("text", HOSTILE)
async def test_stored_content_is_text(state: State, text: str) -> None:
    agent = AgentId.parse(text)
    task = await state.tasks.submit(agent, ChatMessage.user(text), owner=text, session_id=text)
    [claimed] = await state.tasks.claim(text, agents=[agent])
    await state.tasks.record_step(claimed.lease, StepKey(text), {text: text})
    await state.tasks.append_artifact(claimed.lease, text, [DataBlock({text: text})])
    said = ChatMessage.assistant(text)
    await state.tasks.transition(
        claimed.lease, "input-required", message=said, ask=StepKey("ask", kind="ask")
    )
    await state.tasks.append_feedback(task.id, text)
    bad = await state.tasks.submit(agent, ChatMessage.user(text))
    [claimed] = await state.tasks.claim(text, agents=[agent])
    await state.tasks.transition(claimed.lease, "failed", note=text)
    board = await state.boards.create_task_list(text, [text], agent_id=text, agent_label=text)
    await state.boards.update_status(board.id, board.tasks[0].id, "blocked", text)
    await state.episodes.start_session(agent, text)
    await state.episodes.append([Event(agent, text, text, {text: text, "text": f"tide {text}"})])
    await state.short_term.set_state(text, {text: text})
    await state.long_term.save(agent, f"tide {text}", topic=text, source=text)
    await state.graph.add_entities([Entity(text, {"name": text, text: text}, id=text)])
    await state.graph.add_relationships([Relationship(text, text, text, {text: text})])
    await state.keys.create("ana", name=text)
    named, key = quote(text, safe=""), quote(str(agent), safe="")
    async with Visitor(state) as visitor:
        for path in (
            "/studio",
            "/studio/tasks",
            f"/studio/tasks?agent={key}&owner={named}",
            f"/studio/tasks/{task.id}",
            f"/studio/tasks/{task.id}?at=4",
            f"/studio/tasks/{bad.id}",
            "/studio/boards",
            f"/studio/boards/{named}",
            "/studio/sessions",
            f"/studio/sessions/{named}",
            f"/studio/sessions/{named}?type={named}",
            f"/studio/recall?agent={key}&q=tide",
            f"/studio/recall?agent={key}&q={named}",
            f"/studio/facts?agent={key}&q={named}",
            f"/studio/facts?agent={key}",
            f"/studio/graph?from={named}",
            f"/studio/graph?from={named}&to={named}&hide={named}",
            f"/studio/search?q={named}",
            f"/studio/search?q={key}",
            "/studio/keys",
            f"/studio/tasks/{named}",
            f"/studio/{named}",
        ):
            response = await visitor.get(path)
            assert response.status_code in {200, 404}, (path, response.text)
            assert not dangers(response.text), path
            assert "60481729" not in response.text


@pytest.mark.asyncio
async def test_hidden_characters_show(state: State) -> None:
    task = await state.tasks.submit("writer", ChatMessage.user("pay\u202eevil\u0007"))
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/tasks/{task.id}")
    assert "pay[U+202E]evil[U+0007]" in page
    assert "\u202e" not in page


@pytest.mark.parametrize("template", sorted((FOLDER / "templates").iterdir()))
def test_no_template_marks_text_as_safe(template: Path) -> None:
    text = template.read_text()
    for forbidden in ("|safe", "| safe", "autoescape", "style=", "onclick", "<script>"):
        assert forbidden not in text


def test_every_screen_is_in_these_tests() -> None:
    paths = {path.partition("?")[0] for path in (*EMPTY, *WORLD)}
    plain = {screen.path for screen in SCREENS if "{" not in screen.path} - {
        "/studio/live",
        "/studio/palette",
    }
    assert plain <= paths


@pytest.mark.asyncio
async def test_a_page_of_an_error_links_back_to_its_section(state: State) -> None:
    async with Visitor(state) as visitor:
        for path, link in (
            ("/studio/tasks/none", 'href="/studio/tasks">Back to tasks'),
            ("/studio/graph?from=none&owner=ana", 'href="/studio/graph?owner=ana">Back to graph'),
            ("/studio/sessions/none", 'href="/studio/sessions">Back to sessions'),
        ):
            shown = await visitor.get(path)
            assert shown.status_code == 404
            assert link in shown.text
        nowhere = await visitor.get("/studio/nowhere")
        assert "Back to" not in nowhere.text
        sent = await visitor.send("/studio/keys", "revoke", key="none")
        assert "Back to keys" in sent.text
    async with Visitor.owner(state, "ana") as visitor:
        hidden = await visitor.get("/studio/keys")
        assert hidden.status_code == 404
        assert "Back to" not in hidden.text
