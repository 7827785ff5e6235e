"""What the pages say of recall is what was measured."""

from __future__ import annotations

import json

from tests.architecture.source import ROOT

MEASURED = json.loads((ROOT / "docs" / "benchmarks" / "recall.json").read_text())


def test_the_table_of_the_tuning_page_is_the_measured_one() -> None:
    page = (ROOT / "docs" / "how-to" / "tune-recall.md").read_text()
    shown = [line for line in page.splitlines() if line.startswith(("| in memory", "| postgres"))]
    measured = {
        f"| {one['engine']} | {one['method']} | {_figures(one['all'])} |"
        for one in MEASURED["methods"]
    }
    assert len(shown) >= 4
    assert set(shown) <= measured


def test_the_decision_guide_has_the_measured_figures() -> None:
    page = (ROOT / "docs" / "explanation" / "decision-guide.md").read_text()
    by_method = {
        one["method"]: one["all"] for one in MEASURED["methods"] if one["engine"] == "postgres"
    }
    for method, label in (("words", "no model at all"), ("words + embedder", "static embedder")):
        figure = f"{by_method[method]['recall_5']:.3f}"
        assert f"| R@5 on LoCoMo, {label} | {figure} | {figure} |" in page
    assert f"| {MEASURED['latency']['words']['p50_ms']:.1f} ms |" in page


def test_the_tuning_page_says_which_bars_were_met_and_which_were_missed() -> None:
    page = (ROOT / "docs" / "how-to" / "tune-recall.md").read_text()
    for name, bar in MEASURED["bars"].items():
        verdict = "met" if bar["met"] else "missed"
        assert f"| {name} | {bar['bar']} | {bar['got']} | {verdict} |" in page


def _figures(score: dict[str, float]) -> str:
    shares = ("evidence_500", "evidence_1000", "evidence_2000")
    return " | ".join(f"{score[name]:.3f}" for name in ("recall_5", "recall_10", "mrr", *shares))
