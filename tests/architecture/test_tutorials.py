"""The blocks of the tutorials can be pasted into ``python -m asyncio``, one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OURS = ("HOLDFAST_", "STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_can_be_pasted_into_a_prompt(page: Path, tmp_path: Path) -> None:
    blocks = _BLOCK.findall(page.read_text())
    assert blocks
    # A person presses return after each.
    typed = "\n".join(f"{block}\n" for block in blocks) + "print('the', 'end')\n"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    run = subprocess.run(
        [sys.executable, "-m", "asyncio"],
        input=typed,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "Error" not in run.stderr, run.stderr
    assert "the end" in run.stdout, run.stderr
