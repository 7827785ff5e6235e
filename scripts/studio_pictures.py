"""Make the pictures of Studio in the docs from the demo world.

Run it as ``PYTHONPATH=. python -m scripts.studio_pictures``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import holdfast
from holdfast.studio.demo_world import CONVERSATION, fill
from holdfast.studio.server import StudioServer
from tests.studio.chromium import chromium

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


async def main() -> None:
    """Fill a world, open its pages and keep a picture of each."""
    async with chromium() as browser, holdfast.open("memory:") as state:
        task = await fill(state)
        events = await state.tasks.events(task)
        lost = next(one.seq for one in events if str(one.by) == "recovery")
        server = StudioServer(state)
        running = asyncio.create_task(server.run())
        try:
            context = await browser.new_context(
                viewport={"width": 1280, "height": 800}, locale="en-GB", color_scheme="light"
            )
            page = await context.new_page()
            await page.goto(server.link())
            for name, path in {
                "takeover": f"/tasks/{task}?at={lost}",
                "inbox": "",
                "tasks": "/tasks",
                "board": f"/boards/{CONVERSATION}",
                "recall": f"/recall?agent=planner&session={CONVERSATION}&q=which+database",
            }.items():
                await page.goto(f"{server.url}{path}")
                await page.locator("main").wait_for()
                await page.wait_for_timeout(500)
                await page.screenshot(path=FOLDER / f"{name}.png")
        finally:
            server.stop()
            await running


if __name__ == "__main__":
    asyncio.run(main())
