"""The working state of a session at a moment of its log, and in a fork from there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from holdfast import Event, Settings, State
from holdfast.values.identity import AgentId
from tests.studio.visiting import Visitor
from tests.wiring.kept_states import fresh_state

pytestmark = pytest.mark.asyncio
AGENT = AgentId.parse("planner")
HOSTILE = "<script>alert(1)</script>"


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each kind that keeps versions of working states."""
    url = "memory:" if request.param == "memory" else database
    settings = Settings(max_connections=6, state_versions=10)
    async with fresh_state(url, settings=settings) as opened:
        yield opened


async def _world(state: State) -> None:
    await state.episodes.start_session(AGENT, "s1")
    for n in range(1, 4):
        now = datetime.now(UTC)
        await state.episodes.append([Event(AGENT, "s1", "note", {"n": n}, occurred_at=now)])
        await state.short_term.update_state(
            "s1", {"step": n, f"k{n}": HOSTILE}, delete_keys=[f"k{n - 2}"]
        )


async def test_the_state_is_shown_as_it_was_and_with_what_had_changed(state: State) -> None:
    await _world(state)
    async with Visitor(state) as visitor:
        now = await visitor.page("/studio/sessions/s1")
        assert "Working state now" in now
        assert "<dt>k1 <small>dropped</small></dt>" in now
        assert "<dt>k3 <small>new</small></dt>" in now
        then = await visitor.page("/studio/sessions/s1?at=2")
        assert "Working state at event 2" in then
        assert (
            "<dt>step <small>changed</small></dt><dd><code>2</code><br><del><code>1</code>" in then
        )
        assert "k3" not in then.partition("Working state at")[2].partition("Tasks")[0]
        first = await visitor.page("/studio/sessions/s1?at=1")
        assert "<dt>step</dt><dd><code>1</code>" in first
        for page in (now, then, first):
            assert HOSTILE not in page


async def test_a_fork_has_the_state_of_then_and_sent_twice_it_is_one(state: State) -> None:
    await _world(state)
    async with Visitor(state) as visitor:
        for _ in range(2):
            sent = await visitor.send("/studio/sessions/s1", "fork", at="2", into="s2")
            assert sent.status_code == 303, sent.text
            assert (await state.short_term.get_state("s2"))["step"] == 2
        await state.short_term.update_state("s2", {"step": 9})
        await visitor.send("/studio/sessions/s1", "fork", at="2", into="s2")
    assert (await state.short_term.get_state("s2"))["step"] == 9


async def test_a_moment_of_which_no_version_is_kept_says_so(state: State) -> None:
    await _world(state)
    for n in range(20):
        await state.short_term.update_state("s1", {"late": n})
    async with Visitor(state) as visitor:
        assert "No version of that time is kept" in await visitor.page("/studio/sessions/s1?at=1")
        await visitor.send("/studio/sessions/s1", "fork", at="1", into="s3")
    assert await state.short_term.get_state("s3") == {}


async def test_another_owner_sees_no_state_of_the_past(state: State) -> None:
    await _world(state.for_owner("ana"))
    async with Visitor.owner(state, "bob") as visitor:
        assert (await visitor.get("/studio/sessions/s1?at=2")).status_code == 404
        assert (await visitor.send("/studio/sessions/s1", "fork", at="2", into="mine")).is_error
    assert await state.for_owner("bob").short_term.get_state("mine") == {}
    async with Visitor.owner(state, "ana") as visitor:
        assert "Working state at event 2" in await visitor.page("/studio/sessions/s1?at=2")
