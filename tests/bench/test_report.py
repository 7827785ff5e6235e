"""The page, the pictures and the tables that a run leaves behind."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench import report
from holdfast.bench.report_charts import drawn
from holdfast.bench.report_sheets import sheets
from holdfast.bench.suites import data_of
from holdfast.cli.bench_screen import show
from holdfast.values.errors import MissingExtraError
from tests.architecture.source import ROOT

KEPT = ROOT / "docs" / "benchmarks"
PUBLISHED: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))
}


def test_the_page_is_one_file_that_asks_nobody_for_anything(tmp_path: Path) -> None:
    missing = [{"name": "peers", "why": "<not installed>"}]
    page = report.write(tmp_path, {"stores": PUBLISHED["stores"]}, missing).read_text()
    assert "http:" not in page
    assert "https:" not in page
    assert re.findall(r"<(?:script|link|iframe)", page) == []
    assert all(source.startswith("data:image/png;") for source in re.findall(r'src="([^"]*)', page))
    assert "&lt;not installed&gt;" in page
    assert PUBLISHED["stores"]["command"] in page
    assert json.loads((tmp_path / "stores.json").read_text()) == PUBLISHED["stores"]


def test_a_later_suite_joins_the_page_of_an_earlier_one(tmp_path: Path) -> None:
    report.write(tmp_path, {"stores": PUBLISHED["stores"]}, [])
    page = report.write(tmp_path, {"tasks": PUBLISHED["tasks"]}, []).read_text()
    assert re.findall(r"<h2 id=(\w+)>", page) == ["stores", "tasks"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_everything_published_says_how_and_when_it_was_made(name: str) -> None:
    facts = PUBLISHED[name]
    assert facts["command"].startswith(f"holdfast bench {name}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts["date"])
    assert {"cpu", "cores", "memory_gb"} <= set(facts["machine"])
    assert {"holdfast", "postgres"} <= set(facts["versions"])
    assert sheets(name, facts)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_picture_is_of_the_figures_beside_it_and_small(name: str) -> None:
    picture = KEPT / f"{name}.png"
    assert report.is_of(picture, PUBLISHED[name]), "run `make docs`"
    assert picture.stat().st_size < 60_000


def test_a_picture_is_drawn_again_only_when_its_figures_are_others(tmp_path: Path) -> None:
    source = tmp_path / "tasks.json"
    source.write_text(json.dumps(PUBLISHED["tasks"]))
    assert report.redraw(tmp_path) == [tmp_path / "tasks.png"]
    assert report.redraw(tmp_path) == []
    source.write_text(json.dumps(PUBLISHED["tasks"] | {"growth": 9.9}))
    assert report.redraw(tmp_path) == [tmp_path / "tasks.png"]


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[bench\]'"):
        drawn("tasks", PUBLISHED["tasks"])


def test_what_was_not_run_is_named_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    found, missing = {"tasks": PUBLISHED["tasks"]}, [{"name": "recall", "why": "no data"}]
    show(found, missing, as_json=False)
    assert "not run: recall, no data" in capsys.readouterr().out
    show(found, missing, as_json=True)
    assert json.loads(capsys.readouterr().out) == found | {"missing": missing}


def test_a_suite_finds_its_file_in_a_folder_of_data(tmp_path: Path) -> None:
    for name in ("locomo10.json", "tau_airline.json"):
        (tmp_path / name).touch()
    assert data_of("recall", tmp_path) == tmp_path / "locomo10.json"
    assert data_of("peers", tmp_path) == tmp_path / "tau_airline.json"
    assert data_of("stores", tmp_path) is None
    assert data_of("recall", None) is None
