"""The indexes of vectors, built by maintenance.

Each dimension of large collections has an index, and so have the events of each large agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.queries import load

THRESHOLD = 5_000
"""In a collection of up to this many documents all are compared, which is exact and as fast."""

MAX_VECTOR, MAX_HALFVEC = 2_000, 4_000
"""The most dimensions of an index in 32 and in 16 bits."""

MAX_AGENTS = 100
"""How many agents have a vector index, the largest first: each index makes planning slower."""

_SQL = load("indexes")
_LOCK = 0x686F6C6466617375


@dataclass(frozen=True, slots=True)
class Near:
    """The indexed expression for a dimension, the expression in queries, and the operator class.

    >>> Near.of(384).embedding
    '(embedding::public.vector(384))'
    """

    embedding: str
    query: str
    operators: str = "public.vector_cosine_ops"

    @classmethod
    def of(cls, dimension: int) -> Near:
        """Return 32-bit vectors; 16-bit ones for more dimensions; above that, no index."""
        query = "$3::real[]::public.vector"
        if dimension <= MAX_VECTOR:
            return cls(f"(embedding::public.vector({dimension}))", f"(SELECT {query})")
        if dimension <= MAX_HALFVEC:
            # Normalized to length 1, so that 16 bits are enough for any of its numbers.
            half = f"public.halfvec({dimension})"
            return cls(
                f"(public.l2_normalize(embedding)::{half})",
                f"(SELECT public.l2_normalize({query})::{half})",
                "public.halfvec_cosine_ops",
            )
        return cls("embedding", f"(SELECT {query})")


async def index_collections(connection: Any, *, threshold: int = THRESHOLD) -> AsyncIterator[str]:
    """Build the missing vector indexes of large collections, and make searches use them.

    Run it under the role that migrates, on a connection outside of a transaction. It does not block
    writers, and it restarts a build that was interrupted. It yields a description of each step as
    the step begins; ``build_progress`` returns how far a build is.

    ::

        async for doing in index_collections(connection):
            print(doing)
    """
    with mapped(wrote=True):
        if not await connection.fetchval(_SQL["try_lock"], _LOCK):
            return
        try:
            for row in await connection.fetch(_SQL["large_dimensions"], threshold, MAX_HALFVEC):
                if row["broken"]:
                    yield f"drop the broken index {row['index']}"
                    await _drop(connection, row["index"])
                if not row["built"]:
                    yield f"index the documents of dimension {row['dimension']}"
                    near = Near.of(row["dimension"])
                    build = await connection.fetchval(
                        _SQL["build_statement"],
                        *(row["index"], near.embedding, near.operators, row["dimension"]),
                    )
                    await connection.execute(build)
            await connection.execute(_SQL["mark"], threshold)
        finally:
            if not connection.is_closed():
                await connection.execute(_SQL["unlock"], _LOCK)


async def index_event_vectors(connection: Any, *, threshold: int = THRESHOLD) -> AsyncIterator[str]:
    """Build the missing vector indexes of large agents, and drop those that are no longer used.

    It runs as ``index_collections`` does. ::

        async for doing in index_event_vectors(connection):
            print(doing)
    """
    with mapped(wrote=True):
        if not await connection.fetchval(_SQL["try_lock"], _LOCK):
            return
        try:
            large = await connection.fetch(_SQL["large_agents"], threshold, MAX_HALFVEC, MAX_AGENTS)
            for row in large:
                if row["broken"]:
                    yield f"drop the broken index {row['index']}"
                    await _drop(connection, row["index"])
                if not row["built"]:
                    yield f"index the vectors of {row['agent']}"
                    build = await connection.fetchval(
                        _SQL["build_agent_statement"],
                        *(row["index"], row["tenant"], row["agent"], row["dimension"]),
                    )
                    await connection.execute(build)
            columns = ([row[name] for row in large] for name in ("tenant", "agent", "dimension"))
            await connection.execute(_SQL["mark_agents"], *columns)
            names = [row["index"] for row in large]
            for [name] in await connection.fetch(_SQL["unused_agent_indexes"], names):
                yield f"drop the unused index {name}"
                await _drop(connection, name)
        finally:
            if not connection.is_closed():
                await connection.execute(_SQL["unlock"], _LOCK)


async def _drop(connection: Any, index: str) -> None:
    await connection.execute(await connection.fetchval(_SQL["drop_statement"], index))


async def build_progress(connection: Any) -> float | None:
    """Return the progress of the current index build, from 0 to 1; ``None`` if there is none.

    ::

        share = await build_progress(connection)
    """
    with mapped(wrote=False):
        row = await connection.fetchrow(_SQL["progress"])
    return min(1.0, row["done"] / max(row["total"], 1)) if row else None
