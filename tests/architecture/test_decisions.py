"""The records of decisions are listed, numbered without gaps, and say when they were decided."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
NEVER_USED = {18}
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


def test_every_number_is_used_once_and_listed() -> None:
    numbers = [int(path.name[:4]) for path in RECORDS]
    assert sorted({*numbers, *NEVER_USED}) == list(range(1, max(numbers) + 1))
    assert len(numbers) == len(set(numbers))
    listed = re.findall(
        r"^\| \[\d+\]\((\S+)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    assert listed == [path.name for path in RECORDS]


def test_every_record_has_its_number_a_date_and_a_status() -> None:
    wrong = [
        path.name
        for path in RECORDS
        if not re.match(
            rf"# {int(path.name[:4])}\. .+\n\nDate: \d{{4}}-\d\d-\d\d\. "
            r"Status: (accepted|superseded by \[\d+\]\(\S+\))\.",
            path.read_text(),
        )
    ]
    assert wrong == []
