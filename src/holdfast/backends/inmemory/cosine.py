"""Exact cosine similarity of one vector with many."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def cosines(query: list[float], vectors: Mapping[str, list[float]]) -> dict[str, float]:
    """The cosine of each vector with the query, by key, from -1 to 1.

    >>> cosines([1.0, 0.0], {"same": [2.0, 0.0], "opposite": [-1.0, 0.0]})
    {'same': 1.0, 'opposite': -1.0}
    """
    if not vectors:
        return {}
    matrix = np.array(list(vectors.values()), dtype=np.float64)
    asked = np.array(query, dtype=np.float64)
    found = matrix @ asked / (np.linalg.norm(matrix, axis=1) * np.linalg.norm(asked))
    # Rounded, so that vectors of one direction tie whatever their length.
    return dict(zip(vectors, np.clip(np.round(found, 12), -1.0, 1.0).tolist(), strict=True))
