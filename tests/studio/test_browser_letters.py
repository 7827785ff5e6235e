"""Dead letters in a real Chromium, on Valkey in front of Postgres, by the keyboard alone."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

import holdfast
from holdfast import Event, Settings
from holdfast.studio.server import StudioServer
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import connected, empty_database
from tests.studio.chromium import chromium
from tests.studio.test_browser import PATIENCE, Stage
from tests.studio.test_browser_actions import Hand
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio
AGENT = AgentId.parse("writer")
SETTINGS = Settings(auto_migrate=True, ack_level="hot", background=False)


async def _refuse(url: str, change: str) -> None:
    async with connected(url) as connection:
        await connection.execute(f"ALTER TABLE holdfast.events {change}")


async def test_dead_letters_are_replayed_and_discarded_by_keys_alone() -> None:
    expect.set_options(timeout=PATIENCE)
    async with (
        empty_database() as url,
        holdfast.open(url, redis=valkey().url, tenant=new_ref(), settings=SETTINGS) as state,
    ):
        await _refuse(url, "ADD CONSTRAINT p CHECK (body !~ 'refused') NOT VALID")
        notes = ("first", "refused one", "refused two")
        await state.episodes.append([Event(AGENT, "s1", "note", {"text": one}) for one in notes])
        assert await state.ops.hybrid.consolidator.drain()
        await _refuse(url, "DROP CONSTRAINT p")
        async with chromium() as browser:
            server = StudioServer(state)
            running = asyncio.create_task(server.run())
            try:
                stage = Stage(state, server, browser, "")
                async with stage.context() as context:
                    hand = Hand(stage, context)
                    page = await hand.open("/dead-letters")
                    rows = page.locator("tbody tr")
                    await expect(rows).to_have_count(2)
                    await hand.press(page, "tbody tr:first-child summary")
                    await expect(rows.first).to_contain_text("refused one")
                    await hand.press(page, "tbody tr:first-child button:has-text('Replay')")
                    await expect(rows).to_have_count(1)
                    await hand.press(page, "tbody tr:first-child button:has-text('Discard')")
                    await expect(page.locator(".blank")).to_contain_text("No dead letters")
                assert hand.sent == {"replay", "discard"}
            finally:
                server.stop()
                await running
        found = await state.episodes.recent(AGENT, session_id="s1")
        assert [one.payload["text"] for one in found] == ["first", "refused one"]
