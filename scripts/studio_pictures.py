"""Make the pictures of Studio in the docs from the demo world.

Run it as ``PYTHONPATH=. python -m scripts.studio_pictures``. With a folder as its argument it keeps
a picture of every screen there instead, in light, in dark, and as wide as a phone, to look at.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser

import holdfast
from holdfast.studio import samples
from holdfast.studio.demo_world import CONVERSATION, TRAVEL, fill
from holdfast.studio.server import StudioServer
from tests.studio.chromium import chromium

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
IN_DOCS = ("takeover", "inbox", "tasks", "board", "recall", "session", "health")
_SHAPES: tuple[tuple[str, Literal["light", "dark"], int], ...] = (
    ("light", "light", 1280),
    ("dark", "dark", 1280),
    ("phone", "light", 390),
)


def _screens(task: str, lost: int, failed: str) -> dict[str, str]:
    return {
        "takeover": f"/tasks/{task}?at={lost}",
        "inbox": "",
        "tasks": "/tasks",
        "task-failed": f"/tasks/{failed}",
        "boards": "/boards",
        "board": f"/boards/{CONVERSATION}",
        "board-empty": "/boards/none",
        "sessions": "/sessions",
        "session": f"/sessions/{TRAVEL}?at=3",
        "recall-empty": "/recall",
        "recall": f"/recall?agent=planner&session={CONVERSATION}&q=which+database",
        "facts-empty": "/facts",
        "facts": "/facts?agent=planner&superseded=on",
        "graph-list": "/graph",
        "graph": "/graph?q=launch&depth=2",
        "graph-path": "/graph?from=mei&to=offer+a",
        "search": "/search?q=database",
        "tenants": "/tenants",
        "dead-letters": "/dead-letters",
        "keys": "/keys",
        "erase": "/erase",
        "erase-counted": "/erase?subject=ana",
        "not-found": "/tasks/none",
        "health": "/health",
    }


async def _shoot(
    browser: Browser, server: StudioServer, screens: dict[str, str], folder: Path, shape: str
) -> None:
    _, scheme, width = next(one for one in _SHAPES if one[0] == shape)
    context = await browser.new_context(
        viewport={"width": width, "height": 800}, locale="en-GB", color_scheme=scheme
    )
    page = await context.new_page()
    await page.goto(server.link())
    ending = "" if folder == FOLDER else f"-{shape}"
    for name, path in screens.items():
        await page.goto(f"{server.url}{path}")
        await page.locator("main").wait_for()
        await page.wait_for_timeout(500)
        await page.screenshot(path=folder / f"{name}{ending}.png")
    await context.close()


async def main() -> None:
    """Fill a world, open its pages and keep a picture of each."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    # Charts have more than one point within the time that this takes.
    samples.EVERY_SECONDS = 1.0
    async with (
        chromium() as browser,
        holdfast.open("memory:", settings=holdfast.Settings(state_versions=100)) as state,
    ):
        task = await fill(state)
        events = await state.tasks.events(task)
        lost = next(one.seq for one in events if str(one.by) == "recovery")
        failed = (await state.tasks.list(states=["failed"], limit=1)).tasks[0].id
        screens = _screens(task, lost, failed)
        server = StudioServer(state)
        running = asyncio.create_task(server.run())
        try:
            if folder == FOLDER:
                chosen = {name: screens[name] for name in IN_DOCS}
                await _shoot(browser, server, chosen, folder, "light")
            else:
                for shape, _, _ in _SHAPES:
                    await _shoot(browser, server, screens, folder, shape)
        finally:
            server.stop()
            await running


if __name__ == "__main__":
    asyncio.run(main())
