"""The program of the how-to runs, and the page shows it as it is; a session without a loop."""

from __future__ import annotations

import asyncio
from contextlib import closing

import agents
import pytest
from agents.testing import ScriptedModel, assistant_message

from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.blocking import Portal
from tests.adapters.programs import check_page


def test_the_page_shows_a_program_that_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_page("openai-agents.md", ["openai_agents_agent.py"], monkeypatch, capsys)


def test_a_session_is_made_without_a_loop_and_used_by_run_sync() -> None:
    loop = asyncio.new_event_loop()
    # ``run_sync`` makes a loop where there is none, and does not close it.
    asyncio.set_event_loop(loop)
    with closing(loop), Portal.open("memory:") as portal:
        session = HoldfastSession("s1", portal, session_settings={"limit": 2})
        for text in ("a", "b", "c"):
            model = ScriptedModel([[assistant_message(text)]])
            agent = agents.Agent(name="pilot", model=model)
            agents.Runner.run_sync(agent, f"say {text}", session=session)
            assert len(model.last_call.input) == (1 if text == "a" else 3)
    asyncio.set_event_loop(None)
