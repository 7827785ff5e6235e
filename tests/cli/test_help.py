"""The help of the commands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def lines() -> list[str]:
    shown = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "doctor", "--help"],
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.strip() for line in shown.stdout.splitlines()]


def test_the_paragraphs_of_a_help_fill_its_width(lines: list[str]) -> None:
    full = next(line for line in lines if line.startswith("Checks STORAGE_TYPE"))
    after = lines[lines.index(full) + 1].split()[0]
    # The next word did not fit: no line ends where one of the docstring does.
    assert len(full) + len(after) >= 76


def test_an_example_in_a_help_stays_on_a_line_of_its_own(lines: list[str]) -> None:
    assert "holdfast doctor --strict --json" in lines
