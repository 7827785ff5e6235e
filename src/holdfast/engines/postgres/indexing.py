"""Add queued events to the index of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.engines.postgres.queries import load
from holdfast.values.codec import decode_json
from holdfast.values.event_text import event_text
from holdfast.values.text import tokenize

_SQL = load("indexing")
BATCH = 500
"""About how many events are indexed at once: ranges are taken until they hold this many."""


async def index_batch(
    fetch: Callable[..., Awaitable[Sequence[Any]]], tenant: str, agent: str
) -> int:
    """Index some of an agent's queued events. Return how many; 0 when the queue is empty."""
    rows = await fetch(_SQL["unindexed"], tenant, agent, BATCH)
    if not rows:
        return 0
    ranges: dict[tuple[int, int, int], int] = {}
    events: list[tuple[int, int, int]] = []
    postings: list[tuple[int, str, int]] = []
    for session_key, epoch, first_seq, seq, kind, body in rows:
        place = ranges.setdefault((session_key, epoch, first_seq), len(ranges) + 1)
        if seq is not None:
            words = Counter(tokenize(event_text(kind, decode_json(body))))
            events.append((place, seq, words.total()))
            postings += [(len(events), lexeme, times) for lexeme, times in words.items()]
    await fetch(
        _SQL["index"],
        *(tenant, agent),
        *(
            [row[slot] for row in table]
            for table in (list(ranges), events, postings)
            for slot in range(3)
        ),
    )
    return len(rows)
