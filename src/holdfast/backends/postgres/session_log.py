"""How a batch of events goes into the session log: one statement, one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.storage.log_entry import LogEntry, another_body, distinct

_SQL = load("history")


async def append(
    engine: Postgres,
    tenant: str,
    entries: Sequence[LogEntry],
    embeddings: Sequence[Sequence[float]] | None = None,
) -> dict[str, tuple[int, int]]:
    """Append what is new, all or nothing; the place of each entry by its key.

    The ids make it idempotent: after a lost answer it may simply run again.
    """
    unique = list(distinct(entries).values())
    if not unique:
        return {}
    try:
        if embeddings is not None:
            vectors = dict(zip((entry.key for entry in entries), embeddings, strict=True))
            numbers = [number for one in unique for number in vectors[one.key]]
            rows = await engine.fetch(
                _SQL["append_embedded"],
                *(tenant, *_columns(unique), numbers, len(embeddings[0])),
                safe=True,
            )
        elif len(unique) == 1:
            one = unique[0]
            rows = await engine.fetch(
                _SQL["append_one"],
                *(tenant, one.session, one.agent, one.type, one.id, one.run),
                *(one.occurred_at, one.body),
                safe=True,
            )
        elif len({one.session for one in unique}) == 1:
            _, agents, types, ids, runs, times, bodies = _columns(unique)
            rows = await engine.fetch(
                _SQL["append_to_session"],
                *(tenant, unique[0].session, _brief(agents), _brief(types), ids, _brief(runs)),
                *(times, bodies),
                safe=True,
            )
        else:
            rows = await engine.fetch(_SQL["append_many"], tenant, *_columns(unique), safe=True)
    except ConflictError as error:
        raise another_body(str(error), error.key) from error
    return {unique[place - 1].key: (epoch, seq) for place, epoch, seq in rows}


def _columns(entries: Sequence[LogEntry]) -> tuple[list[Any], ...]:
    return (
        [one.session for one in entries],
        [one.agent for one in entries],
        [one.type for one in entries],
        [one.id for one in entries],
        [one.run for one in entries],
        [one.occurred_at for one in entries],
        [one.body for one in entries],
    )


def _brief(values: list[Any]) -> list[Any]:
    """A column of one and the same value, said once."""
    return values[:1] if len(set(values)) == 1 else values
