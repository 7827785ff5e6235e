"""Studio in a real Chromium: keys, drag, live pages, time travel, axe, hostile content."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

import holdfast
from holdfast import ChatMessage, Event, Settings, State
from holdfast.studio.demo_world import CONVERSATION, TRAVEL, fill
from holdfast.studio.server import StudioServer
from holdfast.values.graph import Entity
from holdfast.values.identity import AgentId
from holdfast.values.tasks.events import StepKey
from holdfast.wiring.front_door import Opening
from tests.studio.chromium import axe, chromium
from tests.studio.test_screens import HOSTILE

pytestmark = pytest.mark.asyncio
PATIENCE = 60_000
"""How many milliseconds a page may take on a busy machine."""


@dataclass(slots=True)
class Stage:
    """A world, a server and a browser."""

    state: State
    server: StudioServer
    browser: Browser
    taken_over: str
    messages: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def context(
        self, *, scheme: Literal["light", "dark"] = "light", width: int = 1360
    ) -> AsyncIterator[BrowserContext]:
        """A browser that has logged in."""
        made = await self.browser.new_context(
            viewport={"width": width, "height": 860}, color_scheme=scheme, locale="en-GB"
        )
        made.set_default_timeout(PATIENCE)
        try:
            page = await made.new_page()
            await page.goto(self.server.link())
            await page.close()
            yield made
        finally:
            await made.close()

    async def open(self, context: BrowserContext, path: str, *, frozen: bool = False) -> Page:
        """A page; what it writes to the console is kept. Timers of a frozen page never run."""
        page = await context.new_page()
        if frozen:
            await page.clock.install(time=0)
            await page.clock.pause_at(1)
        page.on("console", lambda one: self.messages.append(f"{path}: {one.text}"))
        page.on("pageerror", lambda one: self.messages.append(f"{path}: {one}"))
        page.on("dialog", lambda one: self.messages.append(f"{path}: dialog {one.message}"))
        await page.goto(f"{self.server.url}{path}")
        return page


@pytest_asyncio.fixture(scope="module")
async def stage() -> AsyncIterator[Stage]:
    """One stage for all tests of this file."""
    expect.set_options(timeout=PATIENCE)
    async with chromium() as browser, _opened() as state:
        taken_over = await fill(state, pace=0)
        server = StudioServer(state)
        running = asyncio.create_task(server.run())
        try:
            yield Stage(state, server, browser, taken_over)
        finally:
            server.stop()
            await running


def _opened() -> Opening:
    return holdfast.open("memory:", settings=Settings(state_versions=100))


def _pages(stage: Stage) -> list[str]:
    return [
        "",
        "/tasks",
        "/tasks?state=failed",
        "/tasks?state=rejected",
        f"/tasks/{stage.taken_over}",
        f"/tasks/{stage.taken_over}?at=9",
        "/boards",
        f"/boards/{CONVERSATION}",
        "/boards/none",
        "/sessions",
        f"/sessions/{CONVERSATION}",
        f"/sessions/{CONVERSATION}?at=3",
        "/recall",
        f"/recall?agent=planner&session={CONVERSATION}&q=which+database",
        "/facts",
        "/facts?agent=planner&superseded=on",
        "/recall/tests",
        "/sessions/support",
        "/sessions?q=database",
        "/tasks?state=failed&all=retry",
        "/tasks?did=cancel.2.1",
        "/graph",
        "/graph?q=launch&depth=2",
        "/graph?from=mei&to=offer+a",
        "/graph?from=ravi&hide=launch",
        "/graph?from=mei&expand=launch&types=",
        f"/sessions/{TRAVEL}",
        f"/sessions/{TRAVEL}?at=2",
        "/search",
        "/tenants",
        "/search?q=launch",
        "/health",
        "/dead-letters",
        "/keys",
        "/erase",
        "/erase?subject=ana",
    ]


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1360), ("dark", 1360), ("light", 390), ("dark", 390)]
)
async def test_every_page_is_accessible_quiet_and_fits(
    stage: Stage, scheme: Literal["light", "dark"], width: int
) -> None:
    script = axe()
    stage.messages.clear()
    async with stage.context(scheme=scheme, width=width) as context:
        for path in _pages(stage):
            page = await stage.open(context, path)
            await expect(page.locator("main")).to_be_visible()
            await page.evaluate(script)
            found = await page.evaluate(
                "axe.run(document, {resultTypes: ['violations']}).then(found => "
                "found.violations.map(one => [one.id, one.nodes[0].target.join(' ')]))"
            )
            assert found == [], path
            sideways = "document.documentElement.scrollWidth > innerWidth"
            assert not await page.evaluate(sideways), path
            await page.close()
    assert stage.messages == []


async def test_a_page_shows_a_new_task_and_its_steps_by_itself(stage: Stage) -> None:
    ledger = stage.state.tasks
    async with stage.context() as context:
        listed = await stage.open(context, "/tasks?agent=live")
        await expect(listed.locator("tbody .empty")).to_be_visible()
        made = await ledger.submit("live", ChatMessage.user("Tides of Brest?"))
        await expect(listed.locator("tbody [data-row]")).to_have_count(1)
        page = await stage.open(context, f"/tasks/{made.id}")
        [claimed] = await ledger.claim("w1", agents=["live"])
        await ledger.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
        await expect(page.locator(".k-step b")).to_have_text("fetch")
        await ledger.transition(claimed.lease, "completed")
        await expect(page.locator(".facts .pill")).to_have_text("Completed")
        await expect(page.locator(".live")).to_have_count(0)


async def test_the_slider_goes_back_in_time(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{stage.taken_over}")
        heading = page.locator("#th")
        await expect(heading).to_have_text("As it is now")
        await expect(page.locator("hf-timeline svg .tl-dead")).to_have_count(1)
        last = int(await page.locator("[data-scrub]").get_attribute("max") or "0")
        await page.keyboard.press("ArrowLeft")
        await expect(heading).to_have_text(f"As it was after event {last - 1}")
        await page.keyboard.press("Home")
        await expect(heading).to_have_text("As it was after event 1")
        assert "at=1" in page.url
        picture = page.locator("hf-timeline > svg[role=img]")
        await expect(picture).to_have_count(1)
        await page.keyboard.press("End")
        await expect(heading).to_have_text("As it is now")
        await expect(picture).to_have_count(1)
        await page.locator("#e1 .what").click()
        await expect(heading).to_have_text("As it was after event 1")


async def test_a_question_is_answered_by_keys_alone(stage: Stage) -> None:
    made = await stage.state.tasks.submit("asker", ChatMessage.user("Tides?"))
    [claimed] = await stage.state.tasks.claim("w1", agents=["asker"])
    said = ChatMessage.assistant("Which harbour?")
    await stage.state.tasks.transition(
        claimed.lease, "input-required", message=said, ask=StepKey("ask", kind="ask")
    )
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{made.id}")
        await page.keyboard.press("a")
        await page.keyboard.type("Brest")
        await page.keyboard.press("Enter")
        await expect(page.locator(".facts .pill")).to_have_text("Queued")
    found = await stage.state.tasks.get(made.id)
    assert found is not None
    assert found.messages[-1].text == "Brest"


async def test_a_form_with_a_schema_is_filled_and_mended_by_keys_alone(stage: Stage) -> None:
    schema = {
        "type": "object",
        "properties": {
            "harbour": {"enum": ["Brest", "Le Conquet"]},
            # What a browser cannot check: it refuses a number above the maximum by itself.
            "nights": {"type": "integer", "maximum": 99, "not": {"const": 77}},
        },
        "required": ["harbour", "nights"],
    }
    made = await stage.state.tasks.submit("berths", ChatMessage.user("Book a berth"))
    [claimed] = await stage.state.tasks.claim("w1", agents=["berths"])
    await stage.state.tasks.transition(
        claimed.lease,
        "input-required",
        message=ChatMessage.assistant("Which harbour?", metadata={"schema": schema}),
        ask=StepKey("ask", kind="ask"),
        schema=schema,
    )
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{made.id}")
        await page.keyboard.press("a")
        await page.keyboard.press("B")
        await page.keyboard.press("Tab")
        await page.keyboard.type("77")
        await page.keyboard.press("Enter")
        field = page.locator("[aria-invalid]")
        await expect(field).to_have_value("77")
        await field.focus()
        await page.keyboard.press("Control+a")
        await page.keyboard.type("7")
        await page.keyboard.press("Enter")
        await expect(page.locator(".facts .pill")).to_have_text("Queued")
    found = await stage.state.tasks.get(made.id)
    assert found is not None
    assert found.messages[-1].text == '{"harbour": "Brest", "nights": 7}'


async def test_a_session_goes_back_in_time_and_is_forked_by_keys_alone(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, f"/sessions/{CONVERSATION}")
        await page.keyboard.press("Home")
        await expect(page.locator(".scrub output")).to_contain_text("event 1")
        await page.keyboard.press("ArrowRight")
        await expect(page.locator(".scrub output")).to_contain_text("event 2")
        await expect(page.locator(".ev.here")).to_have_count(1)
        await page.locator("[data-fork] summary").focus()
        await page.keyboard.press("Enter")
        await page.locator("[data-fork] input[name=into]").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/sessions/{CONVERSATION}-2")
        await expect(page.locator(".ev")).to_have_count(2)


async def test_rows_open_and_are_selected_by_keys(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, "/tasks?agent=writer")
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.locator("[data-count]")).to_have_text("1 chosen")
        await page.keyboard.press("j")
        await page.keyboard.press("k")
        href = await page.locator("tr.cur").get_attribute("data-href")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**{href}")
        await page.keyboard.press("g")
        await page.keyboard.press("b")
        await page.wait_for_url("**/studio/boards")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("fact")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/studio/facts")


async def test_cards_move_by_keys_and_by_mouse(stage: Stage) -> None:
    boards = stage.state.boards
    made = await boards.create_task_list("keys", ["Read", "Write"])
    async with stage.context() as context:
        page = await stage.open(context, "/boards/keys", frozen=True)
        card = page.locator(".kcard", has_text="Read")
        await card.focus()
        await page.keyboard.press("ArrowRight")
        moved = page.locator(".c-in_progress .kcard", has_text="Read")
        await expect(moved).to_have_count(1)
        await expect(moved).to_be_focused()
        await page.locator(".kcard", has_text="Write").drag_to(page.locator(".col.c-blocked"))
        await expect(page.locator(".c-blocked .kcard", has_text="Write")).to_have_count(1)
        # A move that is refused says why, and the page shows what is there.
        await boards.delete_task(made.id, made.tasks[1].id)
        await page.locator(".kcard", has_text="Write").drag_to(page.locator(".col.c-failed"))
        await expect(page.locator("#say")).to_contain_text("not found")
        await expect(page.locator(".kcard", has_text="Write")).to_have_count(0)
    [board] = await boards.get_boards_by_conversation("keys")
    assert [(one.title, str(one.status)) for one in board.tasks] == [("Read", "in_progress")]


async def test_eight_tabs_are_live(stage: Stage) -> None:
    async with stage.context() as context:
        pages = [await stage.open(context, "/tasks?agent=tabs") for _ in range(8)]
        await stage.state.tasks.submit("tabs", ChatMessage.user("Tides?"))
        for page in pages:
            await expect(page.locator("tbody [data-row]")).to_have_count(1)


async def test_hostile_content_runs_nothing(stage: Stage) -> None:
    state = stage.state
    paths = ["", "/tasks"]
    for at, text in enumerate(HOSTILE):
        made = await state.tasks.submit("hostile", ChatMessage.user(text), owner=text)
        [claimed] = await state.tasks.claim(text, agents=["hostile"])
        await state.tasks.record_step(claimed.lease, StepKey(text), {text: text})
        await state.tasks.transition(claimed.lease, "failed", note=text)
        board = await state.boards.create_task_list(f"h{at}", [text], agent_label=text)
        agent = AgentId.parse("hostile")
        await state.episodes.append([Event(agent, f"h{at}", text, {"text": f"tide {text}"})])
        await state.long_term.save(agent, text, topic=text)
        await state.graph.add_entities([Entity(text, {"name": text}, id=text)])
        assert board.tasks
        paths += [f"/tasks/{made.id}", f"/boards/h{at}", f"/sessions/h{at}"]
        paths.append(f"/graph?from={quote(text, safe='')}")
    paths += ["/recall?agent=hostile&q=tide", "/facts?agent=hostile"]
    stage.messages.clear()
    async with stage.context() as context:
        for path in paths:
            page = await stage.open(context, path)
            await expect(page.locator("main")).to_be_visible()
            assert await page.evaluate("window.pwned") is None, path
            await page.close()
    assert stage.messages == []


async def test_the_policy_refuses_scripts_in_the_page(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, "/tasks")
        refused = await page.evaluate(
            "() => { const one = document.createElement('div'); document.body.append(one);"
            "try { one.innerHTML = '<img src=x onerror=window.pwned=1>' }"
            "catch (error) { return String(error) } }"
        )
        assert "TrustedHTML" in refused
        assert await page.evaluate("window.pwned") is None


async def test_a_link_of_a_browser_works_once(stage: Stage) -> None:
    link = stage.server.link()
    first, second = await stage.browser.new_context(), await stage.browser.new_context()
    try:
        page = await first.new_page()
        await page.goto(link)
        assert page.url == stage.server.url
        answer = await (await second.new_page()).goto(link)
        assert answer is not None
        assert answer.status == 403
    finally:
        await first.close()
        await second.close()
