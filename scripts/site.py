"""Make ``mkdocs.yml`` and ``docs/llms.txt`` from the list of pages in ``docs/README.md``.

Zensical and Material for MkDocs both read ``mkdocs.yml``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_GROUP = re.compile(r"^\*\*(?P<name>[^*]+)\*\*", re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<path>[^)#]+\.md)\)(?P<more>[^\n\[]*)")
_HEAD = """\
# Made from docs/README.md by `make docs`.
site_name: Holdfast
site_description: The durable state and memory layer for AI agents, in Python.
docs_dir: docs
site_dir: build/site
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.top, content.code.copy, search.highlight]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: teal
      toggle: {icon: material/weather-night, name: dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: teal
      toggle: {icon: material/weather-sunny, name: light}
plugins: [search]
extra_css: [assets/site.css]
markdown_extensions:
  - admonition
  - attr_list
  - tables
  - toc: {permalink: true}
  - pymdownx.superfences
  - pymdownx.highlight
nav:
"""


def groups() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The groups of pages: the text of each link, its path, and what is said about it."""
    page = (ROOT / "docs" / "README.md").read_text()
    found = []
    parts = [*_GROUP.finditer(page)]
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        text = page[part.end() : after.start() if after else len(page)]
        links = [
            (" ".join(one["text"].split()), one["path"], one["more"].strip(" :,·"))
            for one in _LINK.finditer(text)
        ]
        found.append((part["name"], links))
    return found


def mkdocs() -> str:
    """The text of ``mkdocs.yml``."""
    lines = ["  - Home: README.md"]
    for name, links in groups():
        lines.append(f"  - {name}:")
        lines += [f"      - {json.dumps(_title(text))}: {path}" for text, path, _ in links]
        if name == "Decisions":
            pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
            lines += [f"      - decisions/{page.name}" for page in pages]
    return _HEAD + "\n".join(lines) + "\n"


def llms() -> str:
    """The text of ``docs/llms.txt``: every page with one line about it, for language models."""
    lines = ["# Holdfast", "", "> The durable state and memory layer for AI agents, in Python."]
    for name, links in groups():
        lines += ["", f"## {name}", ""]
        for text, path, more in links:
            about = f": {more}" if more else ""
            lines.append(f"- [{_title(text)}]({path}){about}")
    return "\n".join(lines) + "\n"


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]
