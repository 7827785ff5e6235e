"""Markdown of stored messages: what it shows, and that nothing in it can do harm."""

from __future__ import annotations

import re

import pytest

from holdfast import ChatMessage, Event, State
from holdfast.studio.markdown import MOST, markdown
from holdfast.testing.hostile import TEXTS
from holdfast.values.identity import AgentId
from tests.studio.visiting import Visitor

TAGS = {"div", "p", "strong", "em", "s", "code", "pre", "ul", "ol", "li", "blockquote", "a", "br"}
HOSTILE = (
    "<script>alert(1)</script>",
    "**x** <img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](  JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x) [y](file:///etc/passwd) [z](//evil.example)",
    "![x](https://evil.example/pixel.png)",
    '[x](https://a.example/" onmouseover="alert(1))',
    "[x](https://a.example 'title\" onclick=\"alert(1)')",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "`<svg onload=alert(1)>`",
    "<javascript:alert(1)> <https://a.example/<script>>",
    "[a]: javascript:alert(1)\n\n[a]",
    "# <h1>\n\n| a | b |\n|--|--|\n| <b> | c |",
    "a \u202e**b**\u0000",
)


@pytest.mark.parametrize("text", [*HOSTILE, *(str(one.value)[:5000] for one in TEXTS)])
def test_a_hostile_text_stays_text(text: str) -> None:
    shown = str(markdown(text))
    tags = re.findall(r"<\s*/?\s*([^\s>/]+)([^>]*)", shown)
    assert {name for name, _ in tags} <= TAGS
    for name, attributes in tags:
        left = re.sub(r'\b(?:class|href|rel|target|start|title)="[^"]*"', "", attributes)
        assert not left.strip(" /"), (name, attributes)
    for address in re.findall(r'href="([^"]*)"', shown):
        assert address.startswith(("http://", "https://", "mailto:")), address
    assert "<img" not in shown
    assert "\u202e" not in shown


def test_a_link_carries_no_referrer_and_opens_elsewhere() -> None:
    shown = str(markdown("see [the docs](https://a.example/?a=1&b=2)"))
    assert 'href="https://a.example/?a=1&amp;b=2"' in shown
    assert 'rel="noopener noreferrer nofollow" target="_blank"' in shown


def test_lists_code_and_emphasis_show() -> None:
    shown = str(markdown("- **one**\n- `two`\n\n1. *three*\n\n```py\nx = 1\n```"))
    for part in ("<strong>one</strong>", "<code>two</code>", "<em>three</em>", "<pre><code"):
        assert part in shown


def test_a_plain_and_a_long_text_are_not_parsed() -> None:
    assert str(markdown("a < b\nc")) == '<div class="md plain">a &lt; b\nc</div>'
    long = "**x** " * MOST
    assert "<strong>" not in markdown(long)
    assert len(markdown(long)) < MOST + 100


def test_a_text_that_nests_without_end_is_bounded() -> None:
    for text in (">" * MOST, "- " * (MOST // 2), "[" * MOST, "*" * MOST, "`" * MOST):
        assert len(markdown(text)) < 40 * MOST


@pytest.mark.asyncio
async def test_a_forgotten_event_is_gone_from_the_session_and_from_recall(state: State) -> None:
    agent = AgentId.parse("planner")
    said = [Event.of_message(agent, "s1", ChatMessage.user(f"tide {n}")) for n in range(3)]
    await state.episodes.append(said)
    async with Visitor(state) as visitor:
        sent = await visitor.send("/studio/sessions/s1", "forget", event=said[0].id)
        assert sent.status_code == 303, sent.text
        again = await visitor.send("/studio/sessions/s1", "forget", event=said[0].id)
        assert again.status_code == 404
        sent = await visitor.send("/studio/recall", "forget", session="s1", event=said[1].id)
        assert sent.status_code == 303, sent.text
        page = await visitor.page("/studio/recall?agent=planner&q=tide")
        assert ">Forget</button>" in page
        assert "tide 0" not in await visitor.page("/studio/sessions/s1")
    hits = await state.episodes.recall(agent, "tide")
    assert [hit.event.id for hit in hits] == [said[2].id]
    async with Visitor(state, read_only=True) as visitor:
        assert ">Forget</button>" not in await visitor.page("/studio/sessions/s1")
        sent = await visitor.send("/studio/sessions/s1", "forget", event=said[2].id)
        assert sent.status_code == 405


@pytest.mark.asyncio
async def test_another_owner_forgets_nothing(state: State) -> None:
    agent = AgentId.parse("planner")
    [event] = await state.for_owner("ana").episodes.append([Event(agent, "s1", "note", {"a": 1})])
    async with Visitor.owner(state, "bob") as visitor:
        for path, fields in (("/studio/sessions/s1", {}), ("/studio/recall", {"session": "s1"})):
            sent = await visitor.send(path, "forget", event=event.id, **fields)
            assert sent.status_code == 404
    assert await state.for_owner("ana").episodes.get("s1", [event.id])
