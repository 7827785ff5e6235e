"""The programs of the how-to run, and the page shows them as they are."""

from __future__ import annotations

import pytest

from tests.adapters.programs import check_page

PROGRAMS = ("langgraph_agent.py", "langgraph_memories.py")


def test_the_page_shows_programs_that_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_page("langgraph.md", PROGRAMS, monkeypatch, capsys)
