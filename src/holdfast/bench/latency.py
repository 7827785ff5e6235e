"""Statistics of the times of calls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of the times, in microseconds.

    >>> percentiles([0.001, 0.002, 0.003])["p50_us"]
    2000.0
    """
    found = np.percentile(np.asarray(seconds), (50, 95, 99)) * 1e6
    return {
        name: round(float(value), 1)
        for name, value in zip(("p50_us", "p95_us", "p99_us"), found, strict=True)
    }


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return how a cost grows: 0 is constant, 1 is proportional to the size, 2 to its square.

    It is the slope of the least-squares line through the logarithms of both.

    >>> slope([10, 100, 1000], [5, 50, 500])
    1.0
    """
    across = [math.log(size) for size in sizes]
    up = [math.log(value) for value in values]
    return round(float(np.polyfit(across, up, 1)[0]), 3)
