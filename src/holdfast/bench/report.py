"""``--report``: one self-contained HTML page, with pictures and JSON files in the same folder."""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

from holdfast.bench.report_charts import SOURCE, digest, drawn
from holdfast.bench.report_sheets import Sheet, made_by, sheets

Facts = dict[str, Any]

TITLES = {
    "stores": "What a call costs beside the bare driver",
    "tasks": "No-op tasks",
    "hybrid": "Redis only, Postgres only, both",
    "recall": "What recall finds",
    "peers": "Beside the peers",
    "growth": "As things grow",
}
"""The suites in a report with their titles, in this order."""

_READING = (
    "Take the figures as ratios: both sides of each were measured in turns on one machine. What "
    "did not reach its bar is marked as missed."
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem;
  color: #222; background: #fff }
h1, h2, h3 { line-height: 1.2 }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #eee }
td.missed { color: #b00020; font-weight: 600 } .made, .note { color: #666 }
img { max-width: 100% }
pre { overflow: auto; max-height: 30rem; background: #f6f6f6; padding: 1rem }
"""


def write(folder: Path, found: dict[str, Facts], missing: list[dict[str, str]]) -> Path:
    """Write ``index.html``, and a picture and a JSON file per suite. Returns the path of the page.

    The page also has the suites that earlier runs wrote to the folder, each with its date. ::

        page = write(Path("build/bench"), {"stores": facts}, [])
    """
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for name, facts in found.items():
        pictures[name] = drawn(name, facts)
        text = json.dumps(facts, indent=2, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (folder / f"{name}.png").write_bytes(pictures[name])
    for name in TITLES:
        source, picture = folder / f"{name}.json", folder / f"{name}.png"
        if name not in found and source.exists() and picture.exists():
            found = found | {name: json.loads(source.read_text(encoding="utf-8"))}
            pictures[name] = picture.read_bytes()
    page = folder / "index.html"
    page.write_text(html(found, pictures, missing), encoding="utf-8")
    return page


def redraw(folder: Path) -> list[Path]:
    """Draw the pictures of a folder again whose figures have changed. Returns their paths.

    ::

        changed = redraw(Path("docs/benchmarks"))
    """
    changed = []
    for name in TITLES:
        source, picture = folder / f"{name}.json", folder / f"{name}.png"
        if not source.exists():
            continue
        facts = json.loads(source.read_text(encoding="utf-8"))
        if not is_of(picture, facts):
            picture.write_bytes(drawn(name, facts))
            changed.append(picture)
    return changed


def is_of(picture: Path, facts: Facts) -> bool:
    """Return whether a picture was drawn from these facts: it contains their digest.

    ::

        assert is_of(Path("docs/benchmarks/stores.png"), facts)
    """
    wanted = f"{SOURCE}\0{digest(facts)}".encode()
    return picture.exists() and wanted in picture.read_bytes()


def html(found: dict[str, Facts], pictures: dict[str, bytes], missing: list[dict[str, str]]) -> str:
    """Return the page: its style, pictures and figures are embedded, so it loads nothing else.

    ::

        text = html({"stores": facts}, {"stores": png}, [])
    """
    parts = [_suite(name, found[name], pictures[name]) for name in TITLES if name in found]
    left_out = [
        f"<p class=note>Not run: {escape(one['name'])}, {escape(one['why'])}</p>" for one in missing
    ]
    return "\n".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8><title>holdfast bench</title>",
            f"<style>{_STYLE}</style><body><h1>holdfast bench</h1>",
            f"<p>{_READING}</p>",
            *left_out,
            *parts,
            "</body></html>",
        ]
    )


def _suite(name: str, facts: Facts, picture: bytes) -> str:
    raw = escape(json.dumps(facts, indent=2, ensure_ascii=False))
    return "\n".join(
        [
            f"<h2 id={name}>{escape(TITLES[name])}</h2>",
            f"<p class=made>{_code(made_by(facts))}</p>",
            f'<img alt="{name}" src="data:image/png;base64,{b64encode(picture).decode()}">',
            *map(_table, sheets(name, facts)),
            f"<details><summary>the raw figures</summary><pre>{raw}</pre></details>",
        ]
    )


def _table(sheet: Sheet) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in sheet.columns)
    rows = ["".join(map(_cell, row)) for row in sheet.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    notes = "".join(f"<p class=note>{_code(note)}</p>" for note in sheet.notes)
    return f"<h3>{escape(sheet.title)}</h3><table><tr>{head}</tr>{body}</table>{notes}"


def _cell(text: str) -> str:
    mark = " class=missed" if "(missed)" in text else ""
    return f"<td{mark}>{escape(text)}</td>"


def _code(text: str) -> str:
    """Return a text as HTML, with the parts between back-ticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
