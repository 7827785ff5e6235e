"""Draws the figures of a suite as one PNG picture, small enough for a repository."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

from holdfast.values.errors import MissingExtraError

Facts = dict[str, Any]

SOURCE = "Source"
"""The name of the PNG metadata entry with the digest of the facts."""

OURS, OTHER, THIRD, FOURTH = "#1f6f8b", "#c9c9c9", "#99c24d", "#d1495b"
SHADES = (OURS, THIRD, "#e09f3e", FOURTH)


def digest(facts: Facts) -> str:
    """Return a digest of the facts of a run.

    >>> digest({"a": 1}) == digest({"a": 1}), len(digest({}))
    (True, 64)
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def drawn(name: str, facts: Facts) -> bytes:
    """Return the picture of a suite as PNG; it contains the digest of its facts.

    ::

        Path("stores.png").write_bytes(drawn("stores", facts))
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - only who draws has it
        from PIL import Image, PngImagePlugin  # noqa: PLC0415 - matplotlib brings it
    except ImportError:
        raise MissingExtraError("the charts of a report", "bench") from None
    figure = Figure(layout="constrained")
    _DRAWERS[name](figure, facts)
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=72)
    info = PngImagePlugin.PngInfo()
    info.add_text(SOURCE, digest(facts))
    # A chart has few colours, and a picture with few colours is a third of the size.
    Image.open(full).convert("RGB").quantize(64).save(small, "PNG", optimize=True, pnginfo=info)
    return small.getvalue()


def _bars_across(axes: Any, labels: list[str], values: list[float], bars: list[float]) -> None:
    """Draw one horizontal bar per row, from the top, with a line at its target."""
    places = range(len(labels))
    axes.barh(places, values, color=OURS, height=0.6)
    axes.scatter(bars, places, marker="|", color=FOURTH, s=180, label="bar", zorder=3)
    axes.set_yticks(places, labels, fontsize=8)
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _stores(figure: Any, facts: Facts) -> None:
    rows = [one for key in ("results", "redis", "objects") for one in facts.get(key, [])]
    figure.set_size_inches(8, 0.8 + 0.27 * len(rows))
    axes = figure.subplots()
    names = [one["name"] for one in rows]
    _bars_across(axes, names, [one["ratio"] for one in rows], [one["bar"] for one in rows])
    axes.axvline(1, color="#555555", linewidth=0.8)
    axes.set_xlabel("p50 against the bare driver doing the same work (1 is the driver itself)")


def _peers(figure: Any, facts: Facts) -> None:
    rows = facts["rows"]
    figure.set_size_inches(8, 0.8 + 0.27 * max(1, len(rows)))
    axes = figure.subplots()
    names = [f"{one['operation']} · {one['peer'].partition('.')[0]}" for one in rows]
    _bars_across(axes, names, [one["ratio"] for one in rows], [one["bar"] for one in rows])
    axes.axvline(1, color="#555555", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("times faster than the peer, p50 (1 is as fast)")


def _tasks(figure: Any, facts: Facts) -> None:
    figure.set_size_inches(8, 2.6)
    for axes, key in zip(figure.subplots(1, 2), ("submit", "claim_and_complete"), strict=True):
        names = [one["name"] for one in facts["rates"]]
        shades = [OURS if name == "holdfast" else OTHER for name in names]
        axes.barh(names, [one[key] for one in facts["rates"]], color=shades)
        axes.invert_yaxis()
        axes.set_title(f"{key.replace('_', ' ')}, tasks a second", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)


def _recall(figure: Any, facts: Facts) -> None:
    figure.set_size_inches(8, 2.8)
    axes = figure.subplots()
    rows = facts["methods"]
    names = [f"{one['engine']}: {one['method']}" for one in rows]
    axes.barh(names, [one["all"]["recall_10"] for one in rows], color=OTHER, label="R@10")
    axes.barh(names, [one["all"]["recall_5"] for one in rows], color=OURS, label="R@5")
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _hybrid(figure: Any, facts: Facts) -> None:
    from holdfast.bench.hybrid_report import OPERATIONS  # noqa: PLC0415 - it needs numpy

    figure.set_size_inches(9, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    operations = ("hot", "episodic", "semantic")
    names = list(facts["space"])
    for at, name in enumerate(names):
        for place, operation in enumerate(operations):
            for row in facts["latency"]:
                key = (row["load"], row["contestant"], row["operation"])
                if key == ("paced", name, operation):
                    where = place + (at - 1.5) * 0.2
                    left.bar(where, row["p95_us"], 0.18, color=SHADES[at])
                    left.hlines(row["p50_us"], where - 0.09, where + 0.09, color="black")
        left.bar(0, 0, color=SHADES[at], label=name)
    left.set_xticks(range(3), [OPERATIONS[one] for one in operations], fontsize=8)
    left.set_yscale("log")
    left.set_title("paced: p95, and a line at p50, in µs", fontsize=9)
    # Above the bars, not over them.
    left.set_ylim(top=left.get_ylim()[1] * 3)
    left.legend(fontsize=8, ncols=4, loc="upper center")
    for at, name in enumerate(names):
        answered = facts["answers"][name]
        # A contestant that cannot search is named, and has no bar.
        right.bar(name, answered.get("fidelity_5", 0), color=SHADES[at])
        if not answered:
            right.text(at, 0.02, "cannot", ha="center", fontsize=8)
    right.axhline(facts["article_below"], color="#555555", linewidth=0.8, linestyle=":")
    right.set_title("fidelity@5 against exact search", fontsize=9)
    right.tick_params(axis="x", labelsize=7, rotation=20)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)


def _growth(figure: Any, facts: Facts) -> None:
    kinds = list(dict.fromkeys(row["grows"] for row in facts["rows"]))
    figure.set_size_inches(3.4 * max(1, len(kinds)), 3.6)
    for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        for row in facts["rows"]:
            if row["grows"] == kind:
                style = "-" if row["wiring"] == "hybrid" else "--"
                points = row["points"]
                axes.plot(
                    [one["size"] for one in points],
                    [one["p50_us"] for one in points],
                    style,
                    marker=".",
                    label=f"{row['operation']}, {row['wiring']}",
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"{kind}: p50 in µs", fontsize=9)
        axes.legend(fontsize=6)
        axes.spines[["top", "right"]].set_visible(False)


_DRAWERS: dict[str, Callable[[Any, Facts], None]] = {
    "stores": _stores,
    "tasks": _tasks,
    "hybrid": _hybrid,
    "recall": _recall,
    "peers": _peers,
    "growth": _growth,
}
