"""The keys of rows and of the palette in a real Chromium."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from holdfast import ChatMessage
from holdfast.values.tasks.events import StepKey
from tests.studio import test_browser
from tests.studio.test_browser import Stage

pytestmark = pytest.mark.asyncio
stage = test_browser.stage


async def test_facts_are_chosen_by_the_keys_of_rows(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, "/facts?agent=planner")
        await page.keyboard.press("j")
        await expect(page.locator("tbody tr").first).to_be_focused()
        # No action of this page has these keys: nothing is chosen for them.
        await page.keyboard.press("r")
        await expect(page.locator("[data-one]:checked")).to_have_count(0)
        await page.keyboard.press("x")
        await expect(page.locator("[data-count]")).to_have_text("1 chosen")
        await page.keyboard.press("Enter")
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.locator("[data-count]")).to_have_text("2 chosen")
        assert page.url.endswith("/facts?agent=planner")


async def test_the_row_of_the_keys_has_the_focus_and_keeps_it_when_the_page_renews_itself(
    stage: Stage,
) -> None:
    ledger = stage.state.tasks
    made = []
    for at in range(2):
        task = await ledger.submit("rows", ChatMessage.user(f"Row {at}"))
        [claimed] = await ledger.claim("w1", agents=["rows"])
        said = ChatMessage.assistant(f"Question {at}?")
        ask = StepKey("ask", kind="ask")
        await ledger.transition(claimed.lease, "input-required", message=said, ask=ask)
        made.append(task.id)
    async with stage.context() as context:
        page = await stage.open(context, "")
        rows = page.locator("[data-row]")
        last = page.locator(f"#a-{made[1]}")
        for _ in range(await rows.count()):
            await page.keyboard.press("j")
        await expect(last).to_be_focused()
        outline = await last.evaluate("one => getComputedStyle(one).outlineStyle")
        assert outline == "solid"
        more = await ledger.submit("rows", ChatMessage.user("Row 2"))
        [claimed] = await ledger.claim("w1", agents=["rows"])
        said = ChatMessage.assistant("Question 2?")
        ask = StepKey("ask", kind="ask")
        await ledger.transition(claimed.lease, "input-required", message=said, ask=ask)
        await expect(page.locator(f"#a-{more.id}")).to_have_count(1)
        await expect(last).to_be_focused()
        await expect(page.locator(".cur")).to_have_count(1)
        # The answer is for the row that has the focus, not for the first.
        await page.keyboard.press("a")
        await page.keyboard.type("yes")
        await page.keyboard.press("Enter")
        await expect(last).to_have_count(0)
    for key in made:
        found = await ledger.get(key)
        assert found is not None
        assert (found.messages[-1].text == "yes") is (key == made[1])


async def test_the_palette_lists_the_pages_before_anything_is_typed(stage: Stage) -> None:
    async with stage.context() as context:
        page = await stage.open(context, "/tasks")
        await page.keyboard.press("Control+k")
        found = page.locator("[data-found] a")
        await expect(found).to_have_count(await page.locator(".nav").count())
        await expect(found.nth(1)).to_contain_text("Tasks")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/studio/boards")
