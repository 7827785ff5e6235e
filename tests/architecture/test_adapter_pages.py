"""The page of an adapter can be read alone: it installs, imports, and defines what it uses."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, undefined_names

HOW_TO = ROOT / "docs" / "how-to"
EXTRAS = {
    "a2a-sdk": "server",
    "agent-framework": "agent-framework",
    "google-adk": "google-adk",
    "langchain": "langchain",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "openai-agents": "openai",
    "pydantic-ai": "pydantic-ai",
}
PAGES = [HOW_TO / f"{name}.md" for name in EXTRAS]
_BLOCK = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pages
def test_it_says_what_to_install_before_its_first_program(page: Path) -> None:
    before = page.read_text().partition("```py\n")[0]
    assert re.search(rf"pip install [^\n]*'\.\[{EXTRAS[page.stem]},embedded\]'", before)


@pages
def test_its_first_program_begins_with_its_imports(page: Path) -> None:
    first = ast.parse(textwrap.dedent(_BLOCK.findall(page.read_text())[0]))
    modules = [one.module or "" for one in ast.walk(first) if isinstance(one, ast.ImportFrom)]
    assert any(one.startswith("holdfast.adapters.") for one in modules)


@pages
def test_every_name_that_it_uses_is_defined_on_it(page: Path) -> None:
    blocks = map(textwrap.dedent, _BLOCK.findall(page.read_text()))
    assert undefined_names(map(ast.parse, blocks)) == set()


@pages
def test_every_program_on_it_is_a_part_of_an_example_that_it_names(page: Path) -> None:
    text = page.read_text()
    codes = [(ROOT / one).read_text() for one in re.findall(r"`(examples/\w+\.py)`", text)]
    assert [one for one in _BLOCK.findall(text) if not any(one in code for code in codes)] == []
