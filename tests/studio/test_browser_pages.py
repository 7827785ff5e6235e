"""Pages of Studio in a real Chromium: what changes while they are opened, and forms in tables."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from playwright.async_api import Route, expect

from holdfast import ChatMessage
from holdfast.studio.demo_world import CONVERSATION
from tests.studio import test_browser
from tests.studio.test_browser import Stage

pytestmark = pytest.mark.asyncio
stage = test_browser.stage


async def test_what_changes_before_a_page_hears_of_changes_is_shown(stage: Stage) -> None:
    ledger, streams = stage.state.tasks, asyncio.Event()

    async def later(route: Route) -> None:
        await streams.wait()
        await route.continue_()

    async with stage.context() as context:
        await context.route("**/studio/live", later)
        made = await ledger.submit("early", ChatMessage.user("Tides of Brest?"))
        first = await stage.open(context, f"/tasks/{made.id}")
        second = await stage.open(context, f"/tasks/{made.id}")
        for page in (first, second):
            await expect(page.locator(".facts .pill")).to_have_text("Queued")
        [claimed] = await ledger.claim("w1", agents=["early"])
        await ledger.transition(claimed.lease, "completed")
        streams.set()
        for page in (first, second):
            await expect(page.locator(".facts .pill")).to_have_text("Completed")
            await expect(page.locator("hf-timeline > svg[role=img]")).to_have_count(1)


async def test_the_form_that_corrects_a_fact_is_within_its_card(stage: Stage) -> None:
    async with stage.context() as context:
        for width in (1280, 390):
            page = await stage.open(context, "/facts?agent=planner")
            await page.set_viewport_size({"width": width, "height": 800})
            await page.locator("tbody summary").first.click()
            card = await page.locator(".card.flush").bounding_box()
            form = await page.locator("tbody form.stackform").first.bounding_box()
            assert card
            assert form
            assert card["x"] <= form["x"]
            assert form["x"] + form["width"] <= card["x"] + card["width"]
            await page.close()


async def test_the_scheme_of_the_system_is_followed_again_when_it_is_chosen(stage: Stage) -> None:
    async with stage.context(scheme="light") as context:
        page = await stage.open(context, "/tasks")
        root, toggle = page.locator("html"), page.locator("[data-theme-toggle]")
        await toggle.click()
        await expect(root).to_have_attribute("data-theme", "dark")
        await page.reload()
        await expect(root).to_have_attribute("data-theme", "dark")
        await toggle.click()
        await expect(root).to_have_attribute("data-theme", "light")
        await page.reload()
        assert await root.get_attribute("data-theme") is None


async def test_a_page_that_is_read_again_stays_at_the_moment_that_was_chosen(stage: Stage) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def later(route: Route) -> None:
        asked.set()
        await answer.wait()
        await route.continue_()

    async with stage.context() as context:
        page = await stage.open(context, f"/sessions/{CONVERSATION}")
        await page.route("**/sessions/*at=1", later)
        await page.keyboard.press("Home")
        await asyncio.wait_for(asked.wait(), 60)
        # The stream begins, and so the page is read again, before the answer is there.
        asked.clear()
        await page.evaluate("new BroadcastChannel('holdfast-studio').postMessage({ready: true})")
        await asyncio.wait_for(asked.wait(), 60)
        answer.set()
        await expect(page.locator(".scrub output")).to_contain_text("event 1")
        assert page.url.endswith("at=1")


async def test_times_that_are_told_as_ago_tick_by_the_clock_of_the_server(stage: Stage) -> None:
    async with stage.context() as context:
        page = await context.new_page()
        # The clock of this machine is two hours late.
        await page.clock.install(time=datetime.now(UTC) - timedelta(hours=2))
        await page.goto(f"{stage.server.url}/sessions")
        shown = page.locator("tbody time").first
        await page.clock.run_for(3 * 60_000)
        await expect(shown).to_have_text(re.compile(r"^([3-9]|\d\d) m \d+ s ago$"))
        await page.clock.run_for(60 * 60_000)
        await expect(shown).to_have_text(re.compile(r"^1 h \d+ m ago$"))
        assert await page.locator("time:not([data-ago])", has_text="ago").count() == 0


CONTRAST = """(selector) => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll(selector)].map((one) => {
    const ground = getComputedStyle(one.closest(".col")).backgroundColor;
    const [a, b] = [light(getComputedStyle(one).color), light(ground)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_single_characters_of_a_board_have_contrast_too(
    stage: Stage, scheme: Literal["light", "dark"]
) -> None:
    # axe leaves out texts of one character.
    async with stage.context(scheme=scheme) as context:
        page = await stage.open(context, f"/boards/{CONVERSATION}")
        for selector in (".col h3 span", ".col .none"):
            found = await page.evaluate(CONTRAST, selector)
            assert found
            assert min(found) >= 4.5, selector
