"""Every feature that was asked for has a row, a page and a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "seeds.md"
ROWS = re.findall(
    r"^\| (F\d+) [^|]*\| \[[^]]+\]\(([^)]+)\) \| (\S+)::(\w+) \|$", PAGE.read_text(), re.MULTILINE
)
LATER = {"F50"}


def test_every_feature_has_a_row() -> None:
    assert [row[0] for row in ROWS] == [f"F{n}" for n in range(1, 54) if f"F{n}" not in LATER]


@pytest.mark.parametrize(("feature", "page", "file", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_the_page_and_the_test_of_a_feature_are_there(
    feature: str, page: str, file: str, test: str
) -> None:
    assert feature
    assert (PAGE.parent / page).is_file()
    assert f"def {test}(" in (ROOT / file).read_text(), f"{file} has no {test}"
