"""The reference of the metrics, from their definitions."""

from __future__ import annotations

from holdfast.server.metric_names import METRICS, Metric

_SOURCES = {
    "process": "Counted in the process",
    "queue": "Of the queues of all tenants",
    "index": "Of the index of recall",
    "pool": "Of the connection pools",
    "hot log": "Of Redis and Postgres together",
}


def page() -> str:
    """Every metric: its name, labels, type and meaning."""
    lines = [
        "# Metrics",
        "",
        "What `/metrics` of `holdfast serve` shows to an operator, and what `holdfast worker`",
        "and `holdfast consolidate` show with `--metrics-port`. `make docs` writes this page. No",
        "label has the name of a tenant, or anything that a client has sent. A scrape reads no",
        "task that has ended. A process without an app (`holdfast consolidate`) does not show",
        "`holdfast_tasks` and their age. All processes of one database show the same queues: use",
        "`max`, not `sum`. How to use them: [trace and monitor](../how-to/trace-and-monitor.md).",
    ]
    for source, title in _SOURCES.items():
        rows = [_row(one) for one in METRICS.values() if one.source == source]
        lines += ["", f"## {title}", "", "| metric | type | meaning |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _row(one: Metric) -> str:
    labels = "{" + ",".join(one.labels) + "}" if one.labels else ""
    return f"| `{one.name}{labels}` | {one.kind} | {one.about} |"
