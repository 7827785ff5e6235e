"""The program of the how-to runs, and the page shows it as it is."""

from __future__ import annotations

import pytest

from tests.adapters.programs import check_page


def test_the_page_shows_a_program_that_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_page("google-adk.md", ["google_adk_agent.py"], monkeypatch, capsys)
