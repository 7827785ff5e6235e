"""The glossary stays short and sorted."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "glossary.md"


def test_the_glossary_has_at_most_25_terms_in_order() -> None:
    terms = re.findall(r"^\| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    assert terms[0] == "term"
    assert len(terms[1:]) <= 25
    assert terms[1:] == sorted(terms[1:], key=str.lower)
