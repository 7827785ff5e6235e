"""Runs the program of a how-to, and compares it with what its page shows."""

from __future__ import annotations

import re
import runpy
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = r"^```{kind}\n(.*?)^```$"


def check_page(
    page: str, program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a program of ``examples`` on a new folder: the page shows its code and what it prints."""
    for name in ("STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(name, raising=False)
    path = ROOT / "examples" / program
    with tempfile.TemporaryDirectory(prefix="hf-docs-") as folder:
        # An embedded server's user can enter it.
        Path(folder).chmod(0o755)
        monkeypatch.setattr("sys.argv", [program, f"{folder}/memory"])
        runpy.run_path(str(path), run_name="__main__")
    text = (ROOT / "docs" / "how-to" / page).read_text()
    assert capsys.readouterr().out in _blocks("text", text)
    shown = _blocks("py", text)
    assert shown
    assert [block for block in shown if block not in path.read_text()] == []


def _blocks(kind: str, text: str) -> list[str]:
    return re.findall(_BLOCK.format(kind=kind), text, re.MULTILINE | re.DOTALL)
