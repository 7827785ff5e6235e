"""The program of the how-to runs, and the page shows it as it is."""

from __future__ import annotations

import re
import runpy
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make test-adapters")

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "examples" / "langgraph_agent.py"


def test_the_program_of_the_how_to_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(prefix="hf-docs-") as folder:
        # An embedded server's user can enter it.
        Path(folder).chmod(0o755)
        monkeypatch.setattr("sys.argv", ["langgraph_agent.py", f"{folder}/memory"])
        runpy.run_path(str(PROGRAM), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    page = (ROOT / "docs" / "how-to" / "langgraph.md").read_text()
    [shown] = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert said == shown.splitlines()


def test_the_page_shows_the_program() -> None:
    page = (ROOT / "docs" / "how-to" / "langgraph.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program = PROGRAM.read_text()
    assert blocks
    assert [block for block in blocks if block not in program] == []
