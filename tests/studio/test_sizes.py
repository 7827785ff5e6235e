"""How much a browser loads: the budget of Studio's scripts and styles, packed."""

from __future__ import annotations

import gzip

from holdfast.studio.pages import FOLDER

SCRIPTS, STYLES = 40 * 1024, 15 * 1024
STATIC = FOLDER / "static"


def _packed(ending: str, *, without: str = "none") -> int:
    files = [one for one in STATIC.glob(f"*.{ending}") if without not in one.name]
    assert files
    return sum(len(gzip.compress(one.read_bytes(), 9)) for one in files)


def test_scripts_and_styles_stay_within_their_budgets() -> None:
    # The library of charts is loaded by one page only, and counted apart.
    assert _packed("js", without="uplot") <= SCRIPTS
    assert _packed("css") <= STYLES
    assert len(gzip.compress((STATIC / "uplot.min.js").read_bytes(), 9)) <= 24 * 1024


def test_a_page_loads_nothing_from_elsewhere() -> None:
    for one in [*STATIC.glob("*.css"), *(FOLDER / "templates").glob("*.html")]:
        text = one.read_text()
        for forbidden in ('src="http', 'href="http', "url(http", "@import"):
            assert forbidden not in text, one.name
