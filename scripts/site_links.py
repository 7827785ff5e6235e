"""Check the built site: links lead to a page and its heading, nothing loads from elsewhere."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
_NOT_LOADED = {"canonical", "alternate", "prev", "next"}


class _Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        wanted = _LOADS.get(tag)
        if wanted and values.get(wanted) and values.get("rel", "") not in _NOT_LOADED:
            self.loads.append(values[wanted])


def problems(folder: Path) -> list[str]:
    """What is wrong with the links of a site, a line each."""
    pages = {page: _Page(page.read_text()) for page in folder.rglob("*.html")}
    found = []
    for page, content in pages.items():
        name = page.relative_to(folder)
        for link in (*content.links, *content.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in content.loads and parts.scheme != "data":
                    found.append(f"{name} loads {link}")
                continue
            # The page of an error is shown at any path, so its links begin at the root.
            base = folder if parts.path.startswith("/") else page.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_relative_to(folder.resolve()) or not target.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages:
                ids = pages[target].ids
                if unquote(parts.fragment) not in ids and not parts.fragment.startswith("__"):
                    found.append(f"{name}: {link} has no such heading")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "every link of the site leads somewhere")
    sys.exit(bool(wrong))
