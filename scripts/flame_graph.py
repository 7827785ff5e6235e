"""Draw a flame graph of collapsed stacks, as ``py-spy record --format raw`` writes them.

::

    python scripts/flame_graph.py record.txt record.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl

LEAST = 0.01
"""Frames that were seen less often are left out."""

LABELLED = 0.04
SHADE = "#e8a15c"


@dataclass(slots=True)
class Frame:
    """A function under its caller, and how often it was seen."""

    seen: int = 0
    called: dict[str, Frame] = field(default_factory=dict)


def read(text: str) -> Frame:
    """What ran in turns of the event loop, as a tree; imports and other threads are left out.

    >>> read("run (a.py:1);Handle._run (events.py:80);call (b.py:2) 3").called["call (b.py)"].seen
    3
    """
    root = Frame()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        _, turn, inside = stack.partition("Handle._run (")
        if not turn or "importlib" in inside:
            continue
        frame = root
        frame.seen += int(count)
        for name in map(_short, inside.split(";")[1:]):
            frame = frame.called.setdefault(name, Frame())
            frame.seen += int(count)
    return root


def _short(name: str) -> str:
    """A frame without its line, which would split one function into many."""
    function, _, place = name.partition(" (")
    return f"{function} ({Path(place.rpartition(':')[0] or place.rstrip(')')).name})"


def draw(root: Frame, title: str, path: Path) -> None:
    """One row for each depth, as wide as it was seen."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    figure, axes = plt.subplots(figsize=(11, 5))
    deepest = _row(axes, root, 0.0, 0, root.seen)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, deepest + 1)
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
    figure.savefig(path, dpi=80, bbox_inches="tight", metadata={"Software": ""})
    plt.close(figure)


def _row(axes: mpl.axes.Axes, frame: Frame, left: float, depth: int, whole: int) -> int:
    deepest = depth
    for name, called in sorted(frame.called.items()):
        share = called.seen / whole
        if share >= LEAST:
            axes.barh(depth, share, left=left, height=0.95, align="edge", color=SHADE, ec="white")
            if share >= LABELLED:
                shown = name[: int(share * 150)]
                axes.text(left + share / 2, depth + 0.45, shown, ha="center", va="center", size=5)
            deepest = max(deepest, _row(axes, called, left, depth + 1, whole))
        left += share
    return deepest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stacks", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    tree = read(given.stacks.read_text())
    draw(tree, f"{given.stacks.stem}: time on the CPU, {tree.seen} samples", given.picture)
