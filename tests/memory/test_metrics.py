"""The figures of the hybrid memory: docs and alert rules name what is counted."""

from __future__ import annotations

import re
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from holdfast.engines.hybrid.metrics import HELP, HybridMetrics, headroom
from holdfast.spi.hybrid.hot_log import HotStats

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "operations"
NAME = re.compile(r"holdfast_[a-z_]+")


def test_every_figure_is_explained_and_counted() -> None:
    samples = dict(HybridMetrics(flushed=3).samples(HotStats(2, 1.0), ttl_seconds=10))
    assert set(samples) == set(HELP)
    assert samples["holdfast_consolidation_flushed_total"] == 3
    assert samples["holdfast_consolidation_pending"] == 2
    assert samples["holdfast_consolidation_ttl_headroom_ratio"] == headroom(
        HotStats(2, 1.0), ttl_seconds=10
    )


def test_the_alert_rules_are_rules_and_name_only_what_is_counted() -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "holdfast-alerts.yml").read_text())
    [found] = [one["rules"] for one in rules["groups"] if one["name"] == "holdfast-consolidation"]
    assert len(found) >= 5
    for rule in found:
        assert {"alert", "expr", "labels", "annotations"} <= set(rule)
        assert set(NAME.findall(rule["expr"])) <= set(HELP)
        assert {"summary", "description"} <= set(rule["annotations"])


def test_the_page_explains_every_figure() -> None:
    page = (DOCS / "consolidation.md").read_text()
    assert {name for name in NAME.findall(page) if name in HELP} == set(HELP)
