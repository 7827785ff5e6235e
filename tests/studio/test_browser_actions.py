"""Every action of every screen in a real Chromium, by the keyboard alone."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

import pytest
from playwright.async_api import BrowserContext, Page, Request, expect

from holdfast import ChatMessage, Event
from holdfast.studio.app import SCREENS
from holdfast.studio.screens import dead_letters
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from holdfast.values.tasks.events import StepKey
from tests.studio import test_browser
from tests.studio.test_browser import Stage

pytestmark = pytest.mark.asyncio
stage = test_browser.stage
AGENT = AgentId.parse("acting")


class Hand:
    """A user who has a keyboard only, says yes to every question, and remembers what was sent."""

    def __init__(self, stage: Stage, context: BrowserContext) -> None:
        self.stage = stage
        self.context = context
        self.sent: set[str] = set()

    async def open(self, path: str) -> Page:
        """Open a page."""
        page = await self.context.new_page()
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
        page.on("request", self._remember)
        await page.goto(f"{self.stage.server.url}{path}")
        return page

    def _remember(self, request: Request) -> None:
        if request.method == "POST":
            self.sent |= set(parse_qs(request.post_data or "").get("do", []))

    @staticmethod
    async def key(page: Page, key: str) -> None:
        """Press a key of the page, once its script listens."""
        await page.wait_for_load_state()
        await page.keyboard.press(key)

    @staticmethod
    async def press(page: Page, selector: str, key: str = "Enter") -> None:
        """Press a key on an element."""
        await page.wait_for_load_state()
        await page.locator(selector).first.focus()
        await page.keyboard.press(key)

    @staticmethod
    async def write(page: Page, selector: str, text: str) -> None:
        """Replace the text of a field."""
        await page.wait_for_load_state()
        await page.locator(selector).first.focus()
        await page.keyboard.press("Control+a")
        await page.keyboard.type(text)


async def _asked(stage: Stage, text: str) -> str:
    agent = f"asks-{text}"
    made = await stage.state.tasks.submit(agent, ChatMessage.user(text))
    [claimed] = await stage.state.tasks.claim("w1", agents=[agent])
    await stage.state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    said = ChatMessage.assistant(f"Question of {text}?")
    ask = StepKey("ask", kind="ask")
    await stage.state.tasks.transition(claimed.lease, "input-required", message=said, ask=ask)
    return made.id


async def _tasks(hand: Hand) -> None:
    first = await _asked(hand.stage, "first")
    second = await _asked(hand.stage, "second")
    page = await hand.open("")
    await hand.write(page, f"#a-{first} input[name=text]", "yes")
    await page.keyboard.press("Enter")
    await expect(page.locator(f"#a-{first}")).to_have_count(0)
    await hand.press(page, f"#a-{second} button:has-text('Cancel the task')")
    await expect(page.locator(f"#a-{second}")).to_have_count(0)

    await page.goto(f"{hand.stage.server.url}/tasks")
    await hand.press(page, "[data-open=new]")
    await page.locator("#new input[name=agent]").focus()
    await page.keyboard.type("acting")
    await page.keyboard.press("Tab")
    await page.keyboard.type("third")
    await hand.press(page, "#new button:has-text('Submit')")
    await expect(page.locator("h1")).to_have_text("third")
    state_of = page.locator(".facts .pill").first
    for button, shown in (("Pause", "Paused"), ("Resume", "Queued")):
        await hand.press(page, f".acts button:has-text('{button}')")
        await expect(state_of).to_have_text(shown)
    await hand.key(page, "c")
    await expect(state_of).to_have_text("Canceled")
    await hand.key(page, "r")
    await expect(page.locator(".facts")).to_contain_text("run again from")

    await _failed_task(hand, page)
    await _many_tasks(hand, page)


async def _failed_task(hand: Hand, page: Page) -> None:
    state = hand.stage.state
    failed = await state.tasks.submit("acting-2", ChatMessage.user("fails"))
    [claimed] = await state.tasks.claim("w1", agents=["acting-2"])
    await state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
    await state.tasks.transition(claimed.lease, "failed", note="ValueError: no tide")
    await page.goto(f"{hand.stage.server.url}/tasks/{failed.id}?at=4")
    await hand.key(page, "f")
    await expect(page.locator("[data-fork] textarea")).to_be_focused()
    await page.keyboard.type("forked")
    await hand.press(page, "[data-fork] button")
    await expect(page.locator("h1")).to_have_text("forked")
    await expect(page.locator(".facts")).to_contain_text("fork of")
    await page.goto(f"{hand.stage.server.url}/tasks/{failed.id}")
    await hand.press(page, "button:has-text('Go on from the last step')")
    await expect(page.locator(".facts")).to_contain_text("goes on from")
    await hand.write(page, "aside textarea[name=text]:not([data-fork] *)", "too slow")
    await hand.press(page, "button:has-text('Save feedback')")
    await expect(page.locator("aside .bubble", has_text="too slow")).to_have_count(1)


async def _many_tasks(hand: Hand, page: Page) -> None:
    await hand.stage.state.tasks.submit("acting-3", ChatMessage.user("many"))
    await page.goto(f"{hand.stage.server.url}/tasks?agent=acting-3")
    rows = page.locator("tbody .pill")
    for do, shown in (("pause", "Paused"), ("resume", "Queued")):
        await hand.key(page, "j")
        await hand.key(page, "x")
        await hand.press(page, f".many [value={do}]")
        await expect(rows).to_have_text([shown])
    await hand.key(page, "j")
    await hand.key(page, "c")
    await expect(rows).to_have_text(["Canceled"])
    await expect(page.locator("#say")).to_have_text("Canceled: 1.")
    await hand.key(page, "j")
    await hand.key(page, "r")
    await expect(rows).to_have_count(2)
    for do, shown in (("pause", "Paused"), ("resume", "Queued"), ("cancel", "Canceled")):
        await page.goto(f"{hand.stage.server.url}/tasks?agent=acting-3&all={do}")
        await hand.press(page, "section[role=status] button")
        await expect(rows.first).to_have_text(shown)
    await page.goto(f"{hand.stage.server.url}/tasks?agent=acting-3&all=retry")
    await hand.press(page, "section[role=status] button")
    # The first was run again before.
    await expect(rows.first).to_have_text("Queued")


async def _boards(hand: Hand) -> None:
    page = await hand.open("/boards/acting")
    await hand.write(page, ".addcard input[name=title]", "Read")
    await page.keyboard.press("Enter")
    card = page.locator(".kcard")
    await expect(card).to_have_count(1)
    await hand.write(page, ".lane .addcard input[name=title]", "Write")
    await page.keyboard.press("Enter")
    await expect(card).to_have_count(2)
    first = ".kcard:has-text('Read')"
    await hand.press(page, f"{first} summary")
    await hand.write(page, f"{first} input[name=note]", "by noon")
    await page.keyboard.press("Enter")
    await expect(page.locator(f"{first} small")).to_have_text("by noon")
    await hand.press(page, f"{first} summary")
    await hand.write(page, f"{first} input[name=title]", "Read it")
    await page.keyboard.press("Enter")
    await expect(page.locator(".kcard > p:first-child")).to_have_text(["Read it", "Write"])
    for column in ("in_progress", "blocked", "failed"):
        await hand.press(page, first, "ArrowRight")
        await expect(page.locator(f".c-{column} {first}")).to_be_focused()
    await hand.press(page, f"{first} button:has-text('Start afresh')")
    await expect(page.locator(f".c-planned {first}")).to_have_count(1)
    await hand.press(page, f"{first} summary")
    await hand.press(page, f"{first} button:has-text('Remove')")
    await expect(card).to_have_count(1)


async def _memory(hand: Hand) -> None:
    state = hand.stage.state
    await state.episodes.start_session(AGENT, "acting-s")
    await state.episodes.append(
        [
            Event(AGENT, "acting-s", "note", {"text": f"the dirigible number {at}"})
            for at in range(3)
        ]
    )
    page = await hand.open("/recall?agent=acting&q=dirigible")
    hit = page.locator(".hit")
    await expect(hit).to_have_count(3)
    await hand.press(page, ".hit button:has-text('Save as test')")
    await expect(page.locator("#say")).to_have_text("Saved as a test.")
    await hand.press(page, ".hit summary:has-text('Pin as a fact')")
    await hand.press(page, ".hit .stackform button")
    await expect(page.locator("#say")).to_have_text("Pinned as a fact.")
    await hand.press(page, ".hit button:has-text('Forget')")
    await expect(hit).to_have_count(2)
    await page.goto(f"{hand.stage.server.url}/recall/tests")
    await hand.press(page, "button:has-text('Delete')")
    await expect(page.locator(".blank")).to_contain_text("No test yet")

    await page.goto(f"{hand.stage.server.url}/facts?agent=acting")
    await hand.press(page, "[data-open=new]")
    await page.locator("#new textarea").focus()
    await page.keyboard.type("The mast is 60 m high")
    await hand.press(page, "#new button:has-text('Save')")
    row = page.locator("tbody tr")
    await expect(row).to_have_count(2)
    await hand.press(page, "tbody tr:first-child summary")
    await hand.write(page, "tbody tr:first-child textarea", "The mast is 70 m high")
    await hand.press(page, "tbody tr:first-child button:has-text('Correct')")
    await expect(page.locator("tbody")).to_contain_text("70 m")
    await hand.press(page, "tbody tr:first-child summary")
    await hand.press(page, "tbody tr:first-child a:has-text('History')")
    await expect(page.locator(".chain li")).to_have_count(2)
    await hand.press(page, "tbody tr:first-child button:has-text('Forget')")
    await expect(row).to_have_count(1)
    await hand.press(page, "thead input[data-all]", "Space")
    await hand.press(page, ".many button")
    await expect(page.locator("tbody")).to_contain_text("No fact here")

    await page.goto(f"{hand.stage.server.url}/sessions/acting-s")
    await hand.press(page, ".forget")
    await expect(page.locator(".feed .ev")).to_have_count(1)
    await hand.press(page, "[data-fork] summary")
    await hand.press(page, "[data-fork] button")
    await page.wait_for_url("**/sessions/acting-s-*")
    await page.goto(f"{hand.stage.server.url}/sessions/acting-s")
    await hand.press(page, "button:has-text('End session')")
    await expect(page.locator(".head .sub")).to_contain_text("ended")
    await hand.write(page, "input[name=confirm]", "acting-s")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/studio/sessions")
    assert await state.episodes.get_session("acting-s") is None


async def _graph(hand: Hand) -> None:
    graph = hand.stage.state.graph
    await graph.add_entities([Entity("Place", {}, name) for name in ("pier", "quay", "mole")])
    await graph.add_relationships(
        [Relationship("pier", "quay", "near", {}), Relationship("quay", "mole", "near", {})]
    )
    page = await hand.open("/graph")
    await hand.write(page, "input[name=q]", "pier")
    await page.keyboard.press("Enter")
    await expect(page.locator("#re")).to_contain_text("pier")
    await hand.press(page, "#n-quay summary")
    await hand.press(page, "#n-quay a:has-text('Expand')")
    await expect(page.locator("#n-mole")).to_have_count(1)
    await hand.press(page, "#n-mole summary")
    await hand.press(page, "#n-mole a:has-text('Hide')")
    await expect(page.locator("#n-mole")).to_have_count(0)
    await hand.press(page, ".rel button")
    await expect(page.locator(".rel")).to_have_count(0)
    await page.goto(f"{hand.stage.server.url}/graph?from=pier")
    await hand.press(page, "#n-pier button:has-text('Delete')")
    await expect(page.locator("main")).to_contain_text("quay")
    assert await graph.find_entities(["pier"]) == []


async def _system(hand: Hand) -> None:
    page = await hand.open("/keys")
    await hand.write(page, "input[name=owner]", "acting")
    await page.keyboard.press("Enter")
    await expect(page.locator(".secret")).to_have_count(1)
    before = await page.locator(".keytext").text_content()
    await hand.press(page, "button:has-text('Rotate')")
    await expect(page.locator(".keytext")).not_to_have_text(before or "")
    await hand.press(page, "button:has-text('Revoke')")
    for left in (1, 0):
        await hand.press(page, "tbody button:has-text('Delete')")
        await expect(page.locator("tbody button")).to_have_count(left)
    await hand.stage.state.tasks.submit("acting-4", ChatMessage.user("x"), owner="acting-o")
    await page.goto(f"{hand.stage.server.url}/erase")
    await hand.write(page, "input[name=subject]", "acting-o")
    await page.keyboard.press("Enter")
    await expect(page.locator("#er")).to_be_visible()
    await hand.write(page, "input[name=confirm]", "acting-o")
    await page.keyboard.press("Enter")
    await expect(page.locator("section[aria-label=Receipt]")).to_be_visible()
    assert (await hand.stage.state.tasks.list(owner="acting-o")).tasks == []


async def test_every_action_of_every_screen_is_done_by_keys_alone(stage: Stage) -> None:
    async with stage.context() as context:
        hand = Hand(stage, context)
        await _tasks(hand)
        await _boards(hand)
        await _memory(hand)
        await _graph(hand)
        await _system(hand)
    # Events become dead letters only where Redis is in front of Postgres.
    all_actions = {do for one in SCREENS if one is not dead_letters.SCREEN for do in one.actions}
    assert hand.sent >= all_actions, all_actions - hand.sent


async def test_the_palette_goes_to_pages_commands_agents_sessions_and_tasks(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, "/tasks")
        for words, url in (("heal", "**/studio/health"), ("failed", "**/tasks?state=failed")):
            await page.keyboard.press("Control+k")
            await page.keyboard.type(words)
            await page.keyboard.press("Enter")
            await page.wait_for_url(url)
        await page.keyboard.press("Control+k")
        await page.keyboard.type("launch-w")
        await expect(page.locator("[data-found] a", has_text="launch-week")).to_have_count(1)
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/sessions/launch-week")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("scout")
        await expect(page.locator("[data-found] a", has_text="facts")).to_have_count(1)
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/studio/facts?agent=scout")


async def test_the_menu_shows_how_many_questions_wait(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, "/boards")
        badge = page.locator("[data-waiting]")
        await expect(badge).not_to_be_empty()
        before = int(await badge.text_content() or "0")
        key = await _asked(stage, "more")
        await expect(badge).to_have_text(str(before + 1))
        await stage.state.tasks.cancel(key)
        await expect(badge).to_have_text(str(before))
