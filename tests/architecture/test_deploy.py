"""deploy/: units, alert rules and the dashboard say only what exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from holdfast.cli.commands import app
from holdfast.cli.consolidate import DRAIN_SECONDS
from holdfast.server.health import HEALTH_PATHS, PROBE_SECONDS
from holdfast.server.metric_names import METRICS, series
from holdfast.wiring.secret_files import BY_FILE
from tests.architecture.source import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
RULES = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "holdfast-alerts.yml").read_text())[
        "groups"
    ]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "holdfast.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
NAME = re.compile(r"\bholdfast_\w+")
LABELS = re.compile(r"(holdfast_\w+)\{([^}]*)\}")
TARGETS = [target for panel in PANELS for target in panel["targets"]]


def _command(unit: Path) -> Any:
    group: Any = typer.main.get_command(app)
    return group.commands[unit.stem.removeprefix("holdfast-")]


def _words(unit: Path, key: str) -> list[str]:
    [line] = re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)
    return str(line).split()


def test_there_is_a_unit_for_every_process_that_stays() -> None:
    assert [unit.stem for unit in UNITS] == [
        "holdfast-consolidate",
        "holdfast-serve",
        "holdfast-worker",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_command_with_options_that_exist_after_the_gate(unit: Path) -> None:
    env, holdfast, name, *options = _words(unit, "ExecStart")
    assert (env, holdfast, f"holdfast-{name}") == ("/usr/bin/env", "holdfast", unit.stem)
    known = {option for one in _command(unit).params for option in one.opts}
    assert {one for one in options if one.startswith("--")} <= known
    gate = _words(unit, "ExecStartPre")
    assert gate == ["/usr/bin/env", "holdfast", "doctor", "--strict"]
    # What strict would refuse is not among the variables that the unit sets or expects.
    names = re.findall(r"\b([A-Z][A-Z_]+)=%d/", unit.read_text())
    assert set(names) == {"DATABASE_URL_FILE", "REDIS_URL_FILE"}
    assert set(names) <= {f"{one}_FILE" for one in BY_FILE}
    assert "HOLDFAST_" not in unit.read_text()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_drains_before_it_is_killed_and_is_hardened(unit: Path) -> None:
    waits = {"grace_seconds", "drain_seconds"}
    [grace] = [one.default for one in _command(unit).params if one.name in waits] or [DRAIN_SECONDS]
    assert int(_words(unit, "TimeoutStopSec")[0]) > grace
    assert _words(unit, "KillSignal") == ["SIGTERM"]
    text = unit.read_text()
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n"):
        assert line in text
    assert not re.search(r"^(DATABASE|REDIS)_URL=|password", text, re.MULTILINE)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd to ask")
def test_systemd_accepts_the_units_and_their_hardening(tmp_path: Path) -> None:
    def verified(*units: Path) -> subprocess.CompletedProcess[str]:
        command = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    found = verified(*UNITS)
    assert (found.returncode, found.stderr) == (0, "")
    wrong = tmp_path / "wrong.service"
    wrong.write_text(UNITS[0].read_text().replace("KillMode=mixed", "KillModes=mixed"))
    assert "KillModes" in verified(wrong).stderr
    for unit in UNITS:
        command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(unit)]
        subprocess.run(command, check=True, capture_output=True)


def _check_query(query: str) -> None:
    """A query names series that exist, with labels that they have, and closes its brackets."""
    assert set(NAME.findall(query)) <= series(), query
    assert NAME.search(query), query
    for name, labels in LABELS.findall(query):
        metric = METRICS.get(name) or METRICS[re.sub("_(bucket|count|sum)$", "", name)]
        assert set(re.findall(r"(\w+)\s*[=!]", labels)) <= set(metric.labels), query
    for opened, closed in ("()", "[]", "{}"):
        assert query.count(opened) == query.count(closed), query
    for name in re.findall(r"(?:rate|increase)\((holdfast_\w+)", query):
        assert name.endswith(("_total", "_bucket", "_count", "_sum")), query


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_a_rule_on_metrics_that_exist(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    _check_query(rule["expr"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))


def test_alerts_have_names_of_their_own_and_cover_every_source() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) >= 13
    used = {name for rule in RULES for name in NAME.findall(rule["expr"])}
    sources = {METRICS[name].source for name in used}
    assert sources == {"process", "queue", "index", "pool", "hot log"}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["expr"])
def test_a_panel_asks_for_metrics_that_exist(target: dict[str, Any]) -> None:
    _check_query(target["expr"])


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= set(DASHBOARD)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS) >= 12
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS}
    assert len(places) == len(PANELS)
    [variable] = DASHBOARD["templating"]["list"]
    for panel in PANELS:
        assert panel["datasource"]["uid"] == f"${{{variable['name']}}}"
        assert panel["title"]
        assert panel["targets"]
    shown = {name for target in TARGETS for name in NAME.findall(target["expr"])}
    for metric in METRICS.values():
        if metric.source == "queue":
            assert metric.name in shown


def test_the_example_of_kubernetes_probes_what_exists_and_drains() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy-workers.md").read_text()
    [text] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    spec = yaml.safe_load(text)["spec"]["template"]["spec"]
    [worker], [gate] = spec["containers"], spec["initContainers"]
    assert gate["command"] == ["holdfast", "doctor", "--strict"]
    known = {option for one in _command(Path("holdfast-worker")).params for option in one.opts}
    assert {one for one in worker["command"] if one.startswith("--")} <= known
    assert str(worker["ports"][0]["containerPort"]) in worker["command"]
    for probe, path in (("liveness", "live"), ("readiness", "ready"), ("startup", "ready")):
        asked = worker[f"{probe}Probe"]["httpGet"]
        assert asked == {"path": f"/health/{path}", "port": worker["ports"][0]["name"]}
        assert asked["path"] in HEALTH_PATHS
    # A check of the engines may take that long before it answers.
    assert worker["readinessProbe"]["timeoutSeconds"] > PROBE_SECONDS
    assert spec["terminationGracePeriodSeconds"] > 30
    assert {one["name"] for one in worker["env"]} <= {f"{name}_FILE" for name in BY_FILE}
