"""The rows of ``benchmarks.growth`` as a picture.

Run it as ``PYTHONPATH=. python -m benchmarks.growth_chart rows.json rows.png``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from holdfast.bench.report_charts import OTHER, OURS


def drawn(facts: dict[str, Any]) -> Figure:
    """Return a bar for each call and database, with the ratio beside it."""
    figure = Figure(layout="constrained", figsize=(7, 4))
    axes = figure.subplots()
    rows = facts["rows"]
    places = range(len(rows))
    for shift, name, colour in ((-0.2, "small", OTHER), (0.2, "large", OURS)):
        values = [row[f"{name}_p50_us"] / 1000 for row in rows.values()]
        label = f"{facts[name]['events']:,} events, {facts[name]['tasks']:,} tasks"
        axes.barh([at + shift for at in places], values, height=0.38, color=colour, label=label)
    axes.set_yticks(places, [f"{name} ({row['ratio']:.2f})" for name, row in rows.items()])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_title("p50 in ms, and the ratio", fontsize=9)
    axes.legend(fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    drawn(json.loads(Path(sys.argv[1]).read_text())).savefig(sys.argv[2], dpi=72)
