"""Runs the programs of a how-to, and compares them with what its page shows."""

from __future__ import annotations

import re
import runpy
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = r"^```{kind}\n(.*?)^```$"


def check_page(
    page: str,
    programs: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run programs of ``examples``, each on a new folder.

    The page shows nothing but parts of them as ``py``, and what each prints as ``text``.
    """
    text = (ROOT / "docs" / "how-to" / page).read_text()
    paths = [ROOT / "examples" / name for name in programs]
    for name in ("STORAGE_TYPE", "DATABASE_URL", "HOLDFAST_DIR", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(name, raising=False)
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="hf-docs-") as folder:
            # An embedded server's user can enter it.
            Path(folder).chmod(0o755)
            monkeypatch.setattr("sys.argv", [path.name, f"{folder}/memory"])
            runpy.run_path(str(path), run_name="__main__")
        assert capsys.readouterr().out in _blocks("text", text)
    shown, codes = _blocks("py", text), [path.read_text() for path in paths]
    assert shown
    assert [block for block in shown if not any(block in code for code in codes)] == []


def _blocks(kind: str, text: str) -> list[str]:
    return re.findall(_BLOCK.format(kind=kind), text, re.MULTILINE | re.DOTALL)
