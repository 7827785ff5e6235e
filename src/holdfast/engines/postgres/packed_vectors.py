"""Vectors in the binary format of pgvector, which the driver sends and reads as one value.

As an array of ``real``, or as text, 384 numbers take longer than a short statement does.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString

import numpy as np

_HEADER_BYTES = 4
"""Two 16-bit numbers: the dimension, and one that is not used."""
_PARAMETER = re.compile(r"(\$[0-9]+)::real\[\](?=::public\.vector)")


def pack(numbers: Sequence[float]) -> bytes:
    """Return the bytes of a vector.

    >>> pack([1.0]).hex()
    '000100003f800000'
    """
    return struct.pack(f">HH{len(numbers)}f", len(numbers), 0, *numbers)


def unpack(data: bytes) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the numbers of a vector.

    >>> unpack(pack([1.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    return np.frombuffer(data, dtype=">f4", offset=_HEADER_BYTES)


def with_packed_vectors(sql: LiteralString) -> LiteralString:
    """Return a statement whose vectors are sent as such; they are lists of numbers, as before.

    >>> with_packed_vectors("SELECT $2::real[]::public.vector, $3::real[]")
    'SELECT $2::public.vector, $3::real[]'
    """
    return _PARAMETER.sub(r"\1", sql)


async def pack_vectors(connection: Any) -> None:
    """Make a connection send and read vectors in their binary format.

    Without pgvector it does nothing: then there is no schema yet. ::

        pool = await asyncpg.create_pool(url, init=pack_vectors)
    """
    # The driver raises it if there is no such type.
    with suppress(ValueError):
        await connection.set_type_codec(
            "vector", schema="public", encoder=pack, decoder=unpack, format="binary"
        )
