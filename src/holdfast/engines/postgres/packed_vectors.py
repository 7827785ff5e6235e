"""Vectors in the binary format of pgvector, which the driver sends and reads as one value.

As an array of ``real``, or as text, 384 numbers take longer than a short statement does.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Sequence
from typing import Any, LiteralString

import numpy as np

from holdfast.engines.postgres.hosts import Connect

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


class VectorCodec:
    """Makes the connections of a pool send and read vectors in their binary format.

    ::

        codec = VectorCodec(timeout_seconds=10)
        pool = await asyncpg.create_pool(url, connect=codec.connecting(asyncpg.connect))
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._lacking = False

    def connecting(self, connect: Connect) -> Connect:
        """Return ``connect`` with one query more, which has the same time as connecting."""

        async def connected(*args: Any, **options: Any) -> Any:
            connection = await connect(*args, **options)
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    await self._set(connection)
            except BaseException:
                # The pool has not got it yet, and closing it would wait for the server.
                connection.terminate()
                raise
            return connection

        return connected

    async def schema_found(self, pool: Any) -> None:
        """Replace connections that were opened before pgvector was there."""
        if self._lacking:
            self._lacking = False
            await pool.expire_connections()

    async def _set(self, connection: Any) -> None:
        try:
            await connection.set_type_codec(
                "vector", schema="public", encoder=pack, decoder=unpack, format="binary"
            )
        except ValueError:
            # What the driver raises if there is no such type: the schema is not there yet.
            self._lacking = True
