"""Forms on pages that renew themselves, in a real Chromium: what was typed stays."""

from __future__ import annotations

import pytest
from playwright.async_api import Dialog, Page, expect

from holdfast import ChatMessage
from holdfast.values.tasks.events import StepKey
from tests.studio import test_browser
from tests.studio.test_browser import Stage

pytestmark = pytest.mark.asyncio
stage = test_browser.stage
BERTH = {
    "type": "object",
    "properties": {
        "harbour": {"enum": ["Brest", "Le Conquet"]},
        "nights": {"type": "integer", "minimum": 1, "not": {"const": 77}},
    },
    "required": ["harbour", "nights"],
}


async def _asked(stage: Stage, agent: str) -> str:
    made = await stage.state.tasks.submit(agent, ChatMessage.user("Book a berth"))
    [claimed] = await stage.state.tasks.claim("w1", agents=[agent])
    await stage.state.tasks.transition(
        claimed.lease,
        "input-required",
        message=ChatMessage.assistant("Which harbour?", metadata={"schema": BERTH}),
        ask=StepKey("ask", kind="ask"),
        schema=BERTH,
    )
    return made.id


async def _renewed(page: Page) -> None:
    """Let the page be read again, as its stream does, and wait until that has been morphed in."""
    await page.evaluate("document.querySelector('h1').dataset.old = ''")
    await page.evaluate("new BroadcastChannel('holdfast-studio').postMessage({ready: true})")
    await expect(page.locator("h1[data-old]")).to_have_count(0)


@pytest.mark.parametrize("path", ["", "/tasks/{}"])
async def test_an_answer_that_is_refused_stays_with_its_reason(stage: Stage, path: str) -> None:
    key = await _asked(stage, f"refused-{len(path)}")
    async with stage.context() as context:
        page = await stage.open(context, path.format(key))
        form = page.locator(f"form:has(input[name=task][value='{key}'])")
        await form.locator("select").select_option("Brest")
        number = form.locator("input[type=number]")
        assert await number.get_attribute("min") == "1"
        await number.fill("77")
        # The page is read again while somebody has written half an answer.
        await page.locator("h1").click()
        await _renewed(page)
        await expect(number).to_have_value("77")
        await form.locator("button.primary").click()
        await expect(form.locator("[aria-invalid]")).to_be_focused()
        await page.locator("h1").click()
        await _renewed(page)
        await expect(form.locator("[role=alert]")).to_be_visible()
        await expect(number).to_have_value("77")
        await expect(form.locator("select")).to_have_value('"Brest"')
        await number.fill("7")
        await form.locator("button.primary").click()
        await expect(form).to_have_count(0)
    found = await stage.state.tasks.get(key)
    assert found is not None
    assert found.messages[-1].text == '{"harbour": "Brest", "nights": 7}'


async def test_a_form_of_an_older_question_gives_way_to_the_next(stage: Stage) -> None:
    key = await _asked(stage, "older")
    async with stage.context() as context:
        page = await stage.open(context, f"/tasks/{key}")
        await page.locator(".ask input[type=number]").fill("3")
        await page.locator("h1").click()
        ledger = stage.state.tasks
        await ledger.respond(key, ChatMessage.user('{"harbour": "Brest", "nights": 2}'))
        [claimed] = await ledger.claim("w1", agents=["older"])
        said = ChatMessage.assistant("In which boat?")
        ask = StepKey("ask", 2, kind="ask")
        await ledger.transition(claimed.lease, "input-required", message=said, ask=ask)
        await expect(page.locator(".ask input[name=text]")).to_have_value("")
        await expect(page.locator(".ask input[type=number]")).to_have_count(0)


async def test_a_task_is_run_again_only_by_somebody_who_says_yes(stage: Stage) -> None:
    ledger = stage.state.tasks
    made = await ledger.submit("once", ChatMessage.user("Send the invoices"))
    await ledger.cancel(made.id)
    asked: list[str] = []

    async def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await dialog.dismiss()

    async with stage.context() as context:
        page = await context.new_page()
        page.on("dialog", refuse)
        for path, key in ((f"/tasks/{made.id}", "r"), ("/tasks?agent=once", "jr")):
            await page.goto(f"{stage.server.url}{path}")
            await page.wait_for_load_state()
            for one in key:
                await page.keyboard.press(one)
        await expect(page.locator("[data-count]")).to_have_text("1 chosen")
    assert ["Send the invoices" in asked[0], asked[1].startswith("Run 1 task again")] == [True] * 2
    assert len(asked) == 2
    assert len((await ledger.list(agent="once")).tasks) == 1


async def test_why_nothing_was_done_stays_on_the_list_with_what_was_chosen(stage: Stage) -> None:
    ledger = stage.state.tasks
    made = await ledger.submit("ended", ChatMessage.user("Send the invoices"))
    await ledger.cancel(made.id)
    async with stage.context() as context:
        page = await stage.open(context, "/tasks?agent=ended")
        await page.locator(f"#t-{made.id} [data-one]").check()
        await page.locator(".many [value=pause]").click()
        reason = page.locator("main [role=alert]")
        await expect(reason).to_contain_text("Not possible for 1 (ended, or paused already).")
        await _renewed(page)
        await expect(reason).to_be_visible()
        await expect(page.locator("[data-count]")).to_have_text("1 chosen")
        assert page.url.endswith("/tasks?agent=ended")
        more = await ledger.submit("ended", ChatMessage.user("Send the reminders"))
        await page.locator(f"#t-{more.id} [data-one]").check()
        await page.locator(".many [value=pause]").click()
        await expect(page.locator("#say")).to_contain_text("Paused: 1. Not possible for 1")
        await expect(page.locator(f"#t-{made.id} [data-one]")).to_be_checked()
        await expect(page.locator("[data-one]:checked")).to_have_count(1)
        assert page.url.endswith("/tasks?agent=ended")
