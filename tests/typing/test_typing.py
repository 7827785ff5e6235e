"""A type checker accepts what is promised, and refuses mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _checked(name: str) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-incremental"]
    found = subprocess.run(
        [*command, "--show-error-codes", "--follow-imports=silent", str(HERE / name)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout


def test_what_is_promised_is_accepted() -> None:
    assert _checked("accepted.py") == ""


def test_mistakes_are_refused() -> None:
    lines = (HERE / "refused.py").read_text().splitlines()
    expected = {
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if (match := re.search(r"# expect: (\S+)$", line))
    }
    found = re.findall(
        r"refused\.py:(\d+): error: .*\[([\w-]+)\]$", _checked("refused.py"), re.MULTILINE
    )
    assert {(int(number), code) for number, code in found} == expected
    assert expected
