"""Studio in a real Chromium: the working state in time, forgetting, search, the playhead."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from holdfast import ChatMessage, Event
from holdfast.studio.demo_world import TRAVEL
from holdfast.values.identity import AgentId
from tests.studio import test_browser
from tests.studio.test_browser import Stage

pytestmark = pytest.mark.asyncio
stage = test_browser.stage


async def test_the_working_state_travels_with_the_slider(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, f"/sessions/{TRAVEL}")
        state = page.locator("section[aria-labelledby=st]")
        await expect(state).to_contain_text("Q-7741")
        for shown in ("book", "choose", "search"):
            await page.keyboard.press("ArrowLeft")
            await expect(state).to_contain_text(shown)
            await expect(state).not_to_contain_text("Q-7741")
        await page.keyboard.press("End")
        await expect(state).to_contain_text("Q-7741")
        await expect(page.locator(".md strong").first).to_have_text("four")


async def test_the_playhead_is_dragged_and_the_slider_follows(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{stage.taken_over}")
        await expect(page.locator("hf-timeline svg")).to_be_visible()
        # Of the element, not of its drawing: that is made again when the fonts have loaded.
        box = await page.locator("hf-timeline").bounding_box()
        assert box
        padding = 14
        middle = box["y"] + box["height"] / 2
        await page.mouse.move(box["x"] + box["width"] - padding - 4, middle)
        await page.mouse.down()
        await page.mouse.move(box["x"] + padding + 140, middle, steps=8)
        await page.mouse.up()
        slider = page.locator("[data-scrub]")
        await expect(page).to_have_url(re.compile(r"[?&]at=\d+$"))
        at = await slider.input_value()
        await expect(page.locator("hf-timeline")).to_have_attribute("data-at", at)
        await slider.focus()
        await page.keyboard.press("End")
        last = await slider.get_attribute("max")
        await expect(page.locator("hf-timeline")).to_have_attribute("data-at", str(last))


async def test_an_event_is_forgotten_and_a_search_over_all_finds_it_no_more(stage: Stage) -> None:
    agent = AgentId.parse("planner")
    await stage.state.episodes.append([Event(agent, "attic", "note", {"text": "an old zeppelin"})])
    async with stage.context() as context:
        page = await stage.open(context, "/health")
        await page.keyboard.press("/")
        await page.keyboard.type("zeppelin")
        await page.keyboard.press("Enter")
        await expect(page.locator("#s-m")).to_have_text("Memories")
        await page.locator("section[aria-labelledby=s-m] a").first.click()
        page.on("dialog", lambda dialog: dialog.accept())
        await page.locator("button.forget").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".feed .none")).to_be_visible()
        assert await stage.state.episodes.recall(agent, "zeppelin") == []


async def test_durations_of_what_goes_on_tick(stage: Stage) -> None:
    made = await stage.state.tasks.submit("nobody-runs-it", ChatMessage.user("Wait"))
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{made.id}")
        ticking = page.locator("[data-since]").first
        before = await ticking.text_content()
        await expect(ticking).not_to_have_text(before or "")
    await stage.state.tasks.cancel(made.id)
