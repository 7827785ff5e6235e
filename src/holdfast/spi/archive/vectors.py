"""Vectors in an archive: 32-bit floats, little-endian."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def pack_vector(numbers: Sequence[float]) -> bytes:
    """Return the bytes of a vector of 32-bit floats.

    >>> unpack_vector(pack_vector([0.5, -1.0]))
    [0.5, -1.0]
    """
    return struct.pack(f"<{len(numbers)}f", *numbers)


def unpack_vector(data: bytes) -> list[float]:
    """Return the numbers of a vector.

    >>> unpack_vector(bytes(4))
    [0.0]
    """
    return list(struct.unpack(f"<{len(data) // 4}f", data))
