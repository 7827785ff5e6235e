"""Vectors by key in one matrix, which is updated in place."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt

_FIRST_ROWS = 64


class VectorRows:
    """The vectors of an agent's events, all of one dimension, as 32-bit floats.

    >>> rows = VectorRows()
    >>> rows.add("e1", [2.0, 0.0])
    >>> rows.of([1.0, 0.0], ["e1", "e2"])
    {'e1': 1.0}
    """

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._at: dict[str, int] = {}
        self._matrix: npt.NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)
        self._norms: npt.NDArray[np.float64] = np.empty(0, dtype=np.float64)

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def add(self, key: str, vector: list[float]) -> None:
        """Store a vector, or replace the one with this key."""
        at = self._at.setdefault(key, len(self._keys))
        if at == len(self._keys):
            self._keys.append(key)
            self._grow(len(self._keys), len(vector))
        self._matrix[at] = vector
        self._norms[at] = np.linalg.norm(self._matrix[at].astype(np.float64))

    def get(self, key: str) -> list[float]:
        """Return a stored vector."""
        found: list[float] = self._matrix[self._at[key]].tolist()
        return found

    def remove(self, key: str) -> None:
        """Delete a vector, if it exists; the last row of the matrix is moved into its row."""
        at = self._at.pop(key, None)
        if at is None:
            return
        last = self._keys.pop()
        if last != key:
            self._keys[at], self._at[last] = last, at
            self._matrix[at] = self._matrix[len(self._keys)]
            self._norms[at] = self._norms[len(self._keys)]

    def of(self, query: list[float], keys: Iterable[str]) -> dict[str, float]:
        """Return the cosines with a query of those keys that have a vector, by key."""
        held = [key for key in keys if key in self._at]
        if not held:
            return {}
        return dict(zip(held, self._cosines(query, [self._at[key] for key in held]), strict=True))

    def nearest(
        self, query: list[float], most: int, only: Collection[str] | None = None
    ) -> dict[str, float]:
        """Return the cosines of the ``most`` nearest vectors by key, and of near ties.

        ``only`` limits the result to some keys. The caller sorts and truncates the result, since it
        has the rule for equal cosines.
        """
        if only is None:
            chosen = np.arange(len(self._keys))
        else:
            found = (self._at[key] for key in only if key in self._at)
            chosen = np.fromiter(found, dtype=np.intp)
        if not len(chosen) or not most:
            return {}
        if most < len(chosen):
            # Preselect in 32 bits; the rounding error is far below the margin.
            asked = np.array(query, dtype=np.float64)
            asked /= np.linalg.norm(asked)
            size = len(self._keys)
            rough = (self._matrix[:size] @ asked.astype(np.float32))[chosen] / self._norms[chosen]
            margin = len(query) * np.finfo(np.float32).eps
            chosen = chosen[rough >= np.partition(rough, -most)[-most] - margin]
        at = chosen.tolist()
        return dict(zip((self._keys[one] for one in at), self._cosines(query, at), strict=True))

    def _cosines(self, query: list[float], at: list[int]) -> list[float]:
        asked = np.array(query, dtype=np.float64)
        found = self._matrix[at].astype(np.float64) @ asked
        found /= self._norms[at] * np.linalg.norm(asked)
        # Round, so that vectors of the same direction tie at any length. Adding 0.0 removes -0.0.
        scores: list[float] = (np.clip(np.round(found, 12), -1.0, 1.0) + 0.0).tolist()
        return scores

    def _grow(self, rows: int, dimension: int) -> None:
        if rows <= len(self._matrix):
            return
        more = max(_FIRST_ROWS, 2 * len(self._matrix))
        matrix = np.zeros((more, dimension), dtype=np.float32)
        norms = np.zeros(more, dtype=np.float64)
        if rows > 1:
            matrix[: rows - 1] = self._matrix[: rows - 1]
            norms[: rows - 1] = self._norms[: rows - 1]
        self._matrix, self._norms = matrix, norms
