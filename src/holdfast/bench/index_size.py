"""Measures the size of the index of recall on Postgres: the rows and bytes of its tables."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.bench.servers import fetch
from holdfast.wiring.admin import Administration
from holdfast.wiring.settings import Settings

VECTOR_TABLES = frozenset(
    {"event_vectors", "event_models", "event_dimensions", "unembedded_events", "refused_events"}
)


@dataclass(frozen=True, slots=True)
class TableSize:
    """The size of a table with its indexes and TOAST; ``rows`` is the estimate of ANALYZE."""

    rows: int
    bytes: int


Sizes: TypeAlias = Mapping[str, TableSize]


async def maintain(url: str, *, patience_seconds: float) -> dict[str, tuple[int, float]]:
    """Run all jobs of ``holdfast db maintain``. Returns how much each did, and its seconds.

    ::

        done, seconds = (await maintain(url, patience_seconds=60))["events indexed for recall"]
    """
    found: dict[str, tuple[int, float]] = {}
    admin = await Administration.open(
        Settings(database_url=url, command_timeout_seconds=patience_seconds)
    )
    try:
        for name, job in admin.jobs().items():
            start = time.perf_counter()
            done = await job()
            found[name] = (done, time.perf_counter() - start)
    finally:
        await admin.aclose()
    return found


async def table_sizes(url: str) -> dict[str, TableSize]:
    """Return the size of every table, after an ANALYZE.

    ::

        sizes = await table_sizes(url)
    """
    await fetch(url, "ANALYZE")
    rows = await fetch(
        url,
        "SELECT relname, greatest(reltuples, 0)::bigint, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r' ORDER BY relname",
    )
    return {name: TableSize(int(count), int(size)) for name, count, size in rows}


def index_of(before: Sizes, after: Sizes, turns: int) -> dict[str, Any]:
    """Return the growth between two measurements, by table, and per turn.

    Tables named ``event_…``, ``indexed_events`` and ``unindexed_events`` are the index. ::

        index_of(empty, filled, turns=5882)["words_bytes_per_turn"]
    """
    names = [name for name in after if _is_index(name)]
    grown = {name: after[name].bytes - _of(before, name).bytes for name in names}
    return {
        "turns": turns,
        "words_bytes_per_turn": _mean(grown, set(names) - VECTOR_TABLES, turns),
        "vector_bytes_per_turn": _mean(grown, VECTOR_TABLES & set(names), turns),
        "log_bytes_per_turn": round(
            (after["events"].bytes - _of(before, "events").bytes) / turns, 1
        ),
        "tables": {
            name: {"rows": after[name].rows - _of(before, name).rows, "bytes": grown[name]}
            for name in names
            if grown[name] or after[name].rows
        },
    }


def _is_index(name: str) -> bool:
    return (
        name.startswith("event_") or name in {"indexed_events", "unindexed_events"} | VECTOR_TABLES
    )


def _of(sizes: Sizes, name: str) -> TableSize:
    return sizes.get(name, TableSize(0, 0))


def _mean(grown: Mapping[str, int], names: Iterable[str], turns: int) -> float:
    return round(sum(grown[name] for name in names) / turns, 1)
