"""Appends a batch of events to the session log: one statement, one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.escape import escape
from holdfast.engines.postgres.payloads import stored_filterable
from holdfast.engines.postgres.queries import load
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.log_entry import LogEntry, another_body
from holdfast.spi.transcripts import Tail
from holdfast.values.codec import encode_json
from holdfast.values.errors import ConflictError, VersionConflictError
from holdfast.values.states import ExpectedWrite, Patched

_SQL = load("history")


async def append(
    engine: Postgres,
    tenant: str,
    entries: Sequence[LogEntry],
    vectors: Sequence[list[float]] | None = None,
    patches: Sequence[ExpectedWrite] = (),
) -> Sequence[Any]:
    """Append new entries, all or none. Returns a row per entry, for ``stored`` to read.

    The ids make it idempotent: it is retried after a lost answer.
    """
    try:
        if patches:
            numbers = [number for vector in vectors or () for number in vector]
            dimension = len(vectors[0]) if vectors else None
            return await engine.fetch(
                _SQL["append_with_states"],
                tenant,
                *(*_columns(entries), numbers, dimension, *_patch_columns(patches)),
                safe=bool(entries),
            )
        if vectors is not None:
            numbers = [number for vector in vectors for number in vector]
            return await engine.fetch(
                _SQL["append_embedded"],
                tenant,
                *(*_columns(entries), numbers, len(vectors[0])),
                safe=True,
            )
        if len(entries) == 1:
            one = entries[0]
            return await engine.fetch(
                _SQL["append_one"],
                *(tenant, one.session, one.agent, one.type, one.id, one.run),
                *(one.occurred_at, one.body, stored_filterable(one.type, one.body)),
                safe=True,
            )
        if len({one.session for one in entries}) == 1:
            batch = _session_columns(entries)
            return await engine.fetch(_SQL["append_to_session"], tenant, *batch, safe=True)
        return await engine.fetch(_SQL["append_many"], tenant, *_columns(entries), safe=True)
    except VersionConflictError:
        raise
    except ConflictError as error:
        raise another_body(str(error), error.key) from error


async def append_messages(engine: Postgres, tenant: str, entries: Sequence[LogEntry]) -> None:
    """Append messages of one session, as ``append`` does, but return no positions."""
    if len(entries) == 1:
        await append(engine, tenant, entries)
        return
    batch = _session_columns(entries)
    try:
        await engine.fetch(_SQL["append_messages"], tenant, *batch, safe=True)
    except ConflictError as error:
        raise another_body(str(error), error.key) from error


async def pop(engine: Postgres, tenant: str, session: str, agent: str) -> PositionedEntry | None:
    """Remove the newest message of an agent in a session and return it; ``None`` if there is none.

    It is not idempotent: a retry would remove another message.
    """
    row = await engine.fetchrow(_SQL["pop"], tenant, session, agent, safe=False)
    if row is None:
        return None
    body, id_, when, seq, epoch, run = row
    return PositionedEntry(LogEntry(agent, session, "message", body, id_, run, when), epoch, seq)


async def replace_tail(
    engine: Postgres, tenant: str, session: str, agent: str, tail: Tail
) -> tuple[int, dict[str, tuple[int, int]]]:
    """Replace the newest messages, all or none.

    Returns the newest number, and the ids and positions of the removed events.

    It is retried after a lost answer: if the new tail is stored already, nothing changes.
    """
    _, _, _, ids, _, *rest = _columns(tail.entries)
    run = tail.entries[0].run if tail.entries else ""
    try:
        *gone, (_, _, last) = await engine.fetch(
            _SQL["replace_tail"],
            tenant,
            *(session, agent, tail.after_seq, tail.expected_last_seq, ids, run, *rest),
            safe=True,
        )
    except VersionConflictError:
        raise
    except ConflictError as error:
        raise another_body(str(error), error.key) from error
    return last, {id_: (epoch, seq) for id_, epoch, seq in gone}


def stored(entries: Sequence[LogEntry], rows: Sequence[Any]) -> Patched[PositionedEntry]:
    """Return the entries as stored, from the rows that ``append`` returned.

    The rows of patched states have negative positions, and their versions as numbers.
    """
    found: dict[int, PositionedEntry] = {}
    versions: dict[int, int] = {}
    for position, epoch, number, when in rows:
        if position > 0:
            entry = entries[position - 1]
            found[position] = PositionedEntry.of(entry, epoch, number, when)
        else:
            versions[-position] = number
    return Patched(
        (found[at] for at in range(1, len(entries) + 1)),
        versions=[versions[at] for at in range(1, len(versions) + 1)],
    )


def _columns(entries: Sequence[LogEntry]) -> tuple[list[Any], ...]:
    return (
        [one.session for one in entries],
        [one.agent for one in entries],
        [one.type for one in entries],
        [one.id for one in entries],
        [one.run for one in entries],
        [one.occurred_at for one in entries],
        [one.body for one in entries],
        [stored_filterable(one.type, one.body) for one in entries],
    )


def _session_columns(entries: Sequence[LogEntry]) -> tuple[Any, ...]:
    """Return the statement parameters of entries of one session."""
    _, agents, types, ids, runs, times, bodies, filterables = _columns(entries)
    return (
        *(entries[0].session, _brief(agents), _brief(types), ids, _brief(runs)),
        *(times, bodies, filterables if any(filterables) else []),
    )


def _patch_columns(patches: Sequence[ExpectedWrite]) -> tuple[list[Any], ...]:
    writes = [one.write for one in patches]
    return (
        [one.session for one in writes],
        [encode_json({escape(key): text for key, text in one.values.items()}) for one in writes],
        [encode_json([escape(key) for key in one.dropped]) for one in writes],
        [one.ttl_seconds for one in writes],
        [one.expected for one in patches],
        [one.kept_versions for one in writes],
    )


def _brief(values: list[Any]) -> list[Any]:
    """Return a column; if all its values are equal, a list with only one of them."""
    return values[:1] if len(set(values)) == 1 else values
