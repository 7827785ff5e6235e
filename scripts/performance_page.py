"""What the pages tell of ``docs/benchmarks/*.json``: tables and pictures, for ``make docs``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.bench.report import TITLES
from holdfast.bench.report_sheets import RECALL_SCORES, made_by, sheets

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "benchmarks"

DASH = "—"

README_ROWS = (
    "append a message",
    "last 20 messages",
    "read a state",
    "save a checkpoint-sized state",
    "a message to a task of 1,000",
    "add a memory",
    "claim and complete, batch 1 (pgqueuer)",
    "queue and run 100 no-op functions (DBOS)",
    "put a checkpoint (adapter)",
    "search items by meaning (adapter)",
    "add an item to a session (adapter)",
    "append an event (adapter)",
)
"""A row for each subject. The README also shows every operation that is slower than its peer."""


def facts(name: str) -> dict[str, Any]:
    """The figures of a suite as they were published; empty where they were not."""
    path = KEPT / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def section(name: str) -> str:
    """The part of the performance page on one suite."""
    found = facts(name)
    if not found:
        return f"Not published yet: `holdfast bench {name}` measures it."
    lines = [
        f"{made_by(found)} All figures: `docs/benchmarks/{name}.json`.",
        "",
        f"![{TITLES[name]}](../benchmarks/{name}.png)",
    ]
    for sheet in sheets(name, found):
        lines += ["", f"**{sheet.title}**", "", sheet.markdown()]
        for note in sheet.notes:
            lines += ["", note]
    return "\n".join(lines)


def readme_table() -> str:
    """The short table of the README: each figure beside what it is compared with."""
    hybrid, peers, recall = facts("hybrid"), facts("peers"), facts("recall")
    rows = [
        (
            one["operation"],
            f"{one['ours_p50_us']:,.0f} µs",
            f"{one['peer_p50_us']:,.0f} µs, {one['peer']}",
            f"{one['ratio']:.1f}",
        )
        for one in peers.get("rows", [])
        if one["operation"] in README_ROWS or one["ratio"] < 1
    ]
    if hybrid:
        times = _paced(hybrid, "hot", "p95_us")
        ours, theirs = times["hybrid"], times["postgres only"]
        rows.append(
            (
                "read working state, 50 paced agents, p95",
                f"{ours:,.0f} µs, Postgres + Redis",
                f"{theirs:,.0f} µs, Postgres only",
                f"{theirs / ours:.1f}",
            )
        )
        mine, article = hybrid["answers"]["hybrid"], hybrid["answers"]["article"]
        rows.append(
            (
                f"the nearest 5 of one agent among {hybrid['agents']}: share of the exact ones",
                f"{mine['fidelity_5']:.3f}",
                f"{article['fidelity_5']:.3f}, one global index and a filter",
                f"{mine['rows_mean']:g} rows of 5, not {article['rows_mean']:.1f}",
            )
        )
    if recall:
        score = _method(recall, "words")["all"]["recall_5"]
        text = f"{recall['data']}, {recall['questions']:,} questions: R@5 without any model"
        rows.append((text, f"{score:.3f}", DASH, DASH))
    lines = ["| what (p50) | Holdfast | beside it | times faster |", "|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def decision_table() -> str:
    """The measured part of the decision guide: one column a wiring."""
    recall, hybrid, stores = facts("recall"), facts("hybrid"), facts("stores")
    columns = ("in memory", "Postgres alone", "Postgres + Redis", "Redis alone")
    rows: list[list[str]] = []
    for method, label in (("words", "no model at all"), ("words + embedder", "static embedder")):
        inside = _method(recall, method, engine="in memory")["all"]["recall_5"]
        stored = _method(recall, method)["all"]["recall_5"]
        shown = (f"{inside:.3f}", f"{stored:.3f}", "as Postgres", DASH)
        rows.append([f"R@5 on {recall['data']}, {label}", *shown])
    words = f"{recall['latency']['words']['p50_ms']:.1f} ms"
    text = "p50 of a recall by words, 500 events of one of 50 agents"
    rows.append([text, DASH, words, "as Postgres", DASH])
    rows += _hybrid_rows(hybrid)
    kept = [name for name in ("recall", "hybrid", "stores") if facts(name)]
    commands = {name: facts(name)["command"] for name in kept}
    names = ", ".join(f"`docs/benchmarks/{one}.json` (`{made}`)" for one, made in commands.items())
    table = ["| measured | " + " | ".join(columns) + " |", "|---|---|---|---|---|"]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    memory = {one["name"]: one["p50_us"] for one in stores.get("memory", {}).get("operations", [])}
    told = ""
    if memory:
        told = (
            f" In memory, an append takes {memory['memory append']:,.0f} µs and a read of working "
            f"state {memory['memory state get']:,.0f} µs."
        )
    return "\n".join([*table, "", f"The figures are from {names}.{told}"])


def _hybrid_rows(hybrid: dict[str, Any]) -> list[list[str]]:
    if not hybrid:
        return []
    wirings = ("postgres only", "hybrid", "redis only")
    rows = []
    for operation, load, text in (
        ("hot", "paced", "p50 / p95 of reading working state, 50 paced agents"),
        ("episodic", "paced", "p50 / p95 of the newest 10 turns"),
        ("semantic", "paced", "p50 / p95 of the nearest 5 of 500 turns"),
        ("record", "writes", "p50 / p95 of recording a turn, 50 agents at once"),
    ):
        middle, slow = (_paced(hybrid, operation, key, load) for key in ("p50_us", "p95_us"))
        cells = [
            f"{middle[one] / 1e3:.2f} / {slow[one] / 1e3:.2f} ms" if one in middle else DASH
            for one in wirings
        ]
        rows.append([text, DASH, *cells])
    answers = hybrid["answers"]
    cells = [f"{answers[one]['fidelity_5']:.3f}" if answers[one] else DASH for one in wirings]
    rows.append(["fidelity@5 of that search", DASH, *cells])
    for key, text in (("redis", "memory of Redis"), ("postgres", "disk of Postgres")):
        sizes = [hybrid["space"][one][f"{key}_mb_per_1000_agents"] for one in wirings]
        cells = [f"{size:,.0f} MB" if size else DASH for size in sizes]
        rows.append([f"{text} for 1,000 agents with {hybrid['turns']} turns each", DASH, *cells])
    return rows


def recall_scores() -> str:
    """The table of methods of the tuning page."""
    methods = facts("recall")["methods"]
    names = [name for name in RECALL_SCORES if name in methods[0]["all"]]
    titles = ["engine", "method", *(RECALL_SCORES[name] for name in names)]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for one in methods:
        scores = (f"{one['all'][name]:.3f}" for name in names)
        lines.append(f"| {one['engine']} | {one['method']} | {' | '.join(scores)} |")
    return "\n".join(lines)


def recall_bars() -> str:
    """The table of bars of the tuning page."""
    lines = ["| what was to be reached | bar | measured | |", "|---|---|---|---|"]
    recall = facts("recall")
    for name, one in recall["bars"].items():
        verdict = "met" if one["met"] else "missed"
        lines.append(f"| {name} | {one['bar']} | {one['got']} | {verdict} |")
    latency = recall["latency"]
    rounds = latency["words"]["p50_ms_of_each_round"]
    load = f"{latency['load_average_before']:.1f} to {latency['load_average_after']:.1f}"
    told = f"{len(rounds)} rounds, {min(rounds)} to {max(rounds)} ms, at a load of {load}"
    return "\n".join([*lines, "", f"The time is the median of {told}."])


def _method(recall: dict[str, Any], method: str, engine: str = "postgres") -> dict[str, Any]:
    [found] = [
        one for one in recall["methods"] if (one["engine"], one["method"]) == (engine, method)
    ]
    return dict(found)


def _paced(
    hybrid: dict[str, Any], operation: str, key: str, load: str = "paced"
) -> dict[str, float]:
    return {
        row["contestant"]: row[key]
        for row in hybrid["latency"]
        if (row["load"], row["operation"]) == (load, operation)
    }
