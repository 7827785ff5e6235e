"""The picture of a task in a real Chromium: what a copy kept, and words that do not overlap."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey
from tests.studio import test_browser
from tests.studio.test_browser import Stage

pytestmark = pytest.mark.asyncio
stage = test_browser.stage
OVERLAPPING = """() => {
  const words = [...document.querySelectorAll("hf-timeline text")].map((one) => {
    const { left, right, top, bottom } = one.getBoundingClientRect();
    return { text: one.textContent, left, right, top: top + 2, bottom: bottom - 2 };
  });
  return words.flatMap((a, at) => words.slice(at + 1).filter((b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  ).map((b) => [a.text, b.text]));
}"""


async def _fork(stage: Stage) -> str:
    """A fork of the task that was taken over, which is taken over too."""
    ledger = stage.state.tasks
    made = await ledger.fork(stage.taken_over, 6)
    await ledger.claim("worker-7f2a", agents=["scout"], lease_seconds=0.2)
    while True:
        await ledger.recover_expired()
        found = await ledger.get(made.id)
        assert found is not None
        if found.state is not TaskState.WORKING:
            break
        await asyncio.sleep(0.05)
    [claimed] = await ledger.claim("worker-b91c", agents=["scout"])
    await ledger.record_step(claimed.lease, StepKey("draft"), {})
    await ledger.release(claimed.lease)
    [claimed] = await ledger.claim("worker-b91c", agents=["scout"])
    await ledger.transition(claimed.lease, "completed")
    return made.id


async def test_the_picture_of_a_fork_shows_what_was_kept_and_no_words_overlap(
    stage: Stage,
) -> None:
    fork = await _fork(stage)
    kept = ["kept: fetch, read", "kept: fetch, read", "kept: fetch, read, draft"]
    for width in (1280, 390, 320):
        async with stage.context(width=width) as context:
            page = await stage.open(context, f"/tasks/{fork}")
            await expect(page.locator(".tl-ghosttext")).to_have_text(kept)
            assert await page.evaluate(OVERLAPPING) == [], width
            page = await stage.open(context, f"/tasks/{stage.taken_over}?at=9")
            await expect(page.locator(".tl-deadtext")).to_have_count(1)
            assert await page.evaluate(OVERLAPPING) == [], width


async def test_the_line_of_the_picture_has_the_number_that_the_slider_stands_at(
    stage: Stage,
) -> None:
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{stage.taken_over}")
        last = await page.locator("[data-scrub]").get_attribute("max")
        label = page.locator(".tl-at")
        await expect(label).to_have_text(f"event {last} of {last}, now")
        await page.keyboard.press("Home")
        await expect(label).to_have_text(f"event 1 of {last}")
        await page.keyboard.press("ArrowRight")
        await expect(label).to_have_text(f"event 2 of {last}")
