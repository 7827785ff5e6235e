"""Exact cosine similarity of one vector with many, for engines that compute it in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def rounded_cosines(query: list[float], matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the cosine of each row with the query, from -1 to 1.

    >>> rounded_cosines([1.0, 0.0], np.array([[2.0, 0.0], [-1.0, 0.0]])).tolist()
    [1.0, -1.0]
    """
    rows = matrix.astype(np.float64)
    asked = np.array(query, dtype=np.float64)
    found = rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked))
    # Round, so that vectors of the same direction tie at any length. Adding 0.0 removes -0.0.
    scores: npt.NDArray[np.float64] = np.clip(np.round(found, 12), -1.0, 1.0) + 0.0
    return scores


def cosines(query: list[float], vectors: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the cosine of each vector with the query, by key, from -1 to 1.

    >>> cosines([1.0, 0.0], {"same": [2.0, 0.0], "opposite": [-1.0, 0.0]})
    {'same': 1.0, 'opposite': -1.0}
    """
    if not vectors:
        return {}
    scores = rounded_cosines(query, np.array(list(vectors.values())))
    return dict(zip(vectors, scores.tolist(), strict=True))
