"""Studio on a phone, in a real Chromium: a menu, filters, all cells, no sideways scroll."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.studio import test_browser
from tests.studio.chromium import axe
from tests.studio.test_browser import Stage, _pages

pytestmark = pytest.mark.asyncio
stage = test_browser.stage


async def test_a_menu_has_the_pages_the_palette_the_tenant_and_the_scheme(stage: Stage) -> None:
    async with stage.context(width=390) as context:
        page = await stage.open(context, "/tasks")
        hidden = [".links .nav >> nth=0", ".find", "input[name=tenant]", "[data-theme-toggle]"]
        for one in hidden:
            await expect(page.locator(one)).to_be_hidden()
        # How many questions wait is seen without the menu.
        await expect(page.locator("[data-waits]")).to_be_visible()
        await page.locator(".menu summary").click()
        for one in hidden:
            await expect(page.locator(one)).to_be_visible()
        await page.evaluate(axe())
        found = await page.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(found => "
            "found.violations.map(one => [one.id, one.nodes[0].target.join(' ')]))"
        )
        assert found == []
        await page.locator("[data-theme-toggle]").click()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await page.locator("[data-theme-toggle]").click()
        await page.locator(".find").click()
        await expect(page.locator("#palette")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.locator(".links .nav", has_text="Boards").click()
        await page.wait_for_url("**/studio/boards")
        await page.set_viewport_size({"width": 1280, "height": 800})
        await expect(page.locator(".menu")).to_be_hidden()
        await expect(page.locator(".links .nav").first).to_be_visible()


async def test_filters_times_and_every_cell_are_there_on_a_phone(stage: Stage) -> None:
    key = (await stage.state.keys.create("ana", name="phone")).key.id
    task = f"/tasks/{stage.taken_over}"
    wanted = {
        "/tasks": ["[name=agent] >> nth=0", "[name=owner] >> nth=0", "select[name=since]"],
        task: [".tabs a >> nth=1", ".ev time >> nth=0"],
        "/facts?agent=planner": ["[name=topic] >> nth=0", "[name=owner]", "td[data-th=Confidence]"],
        "/sessions": ["[name=owner]", "td[data-th='Newest event from']"],
        "/keys": [f"#k-{key} td[data-th={one}]" for one in ("Scope", "Created", "State")],
    }
    for width in (390, 768):
        async with stage.context(width=width) as context:
            for path, selectors in wanted.items():
                page = await stage.open(context, path)
                for one in selectors:
                    await expect(page.locator(one).first).to_be_visible()
                await page.close()
            page = await stage.open(context, "/keys")
            await expect(page.locator(f"#k-{key} td[data-th='Last used']")).to_have_text("never")
    await stage.state.keys.revoke(key)
    await stage.state.keys.delete(key)


async def test_no_page_scrolls_sideways_at_320_pixels(stage: Stage) -> None:
    async with stage.context(width=320) as context:
        for path in _pages(stage):
            page = await stage.open(context, path)
            await expect(page.locator("main")).to_be_visible()
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 320, path
            await page.close()
