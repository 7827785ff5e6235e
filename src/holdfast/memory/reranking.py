"""Reranking of hits after a search: by adjacent events, and by recency.

Both are options. What helps in one kind of conversation harms in another, so the search alone
decides the order unless the caller asks otherwise.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast.contracts.agent_memory import MemoryLog
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event, Recalled
from holdfast.values.explanations import Explanation

NEIGHBOUR_WEIGHT = 0.5
"""The share of the best adjacent score that an event gets."""

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def candidates(k: int) -> int:
    """Return how many hits a search must return, so that reranking finds the best ``k``.

    >>> candidates(5)
    40
    """
    return max(40, 4 * k)


def check_weight(field: str, value: object) -> float:
    """Check a weight from 0 to 1.

    >>> check_weight("recency_weight", 0)
    0.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidInputError(field, f"must be a number from 0 to 1, not {value!r}")
    return float(value)


def with_recency(
    hits: Sequence[Recalled], weight: float, half_life_seconds: float, now: datetime
) -> list[Recalled]:
    """Return the hits ranked by relevance and recency, the best first.

    >>> with_recency([], 0.3, 3600, datetime.now(UTC))
    []
    """
    weighed = []
    for hit in hits:
        age = max(0.0, (now - hit.event.occurred_at).total_seconds())
        recency = 0.5 ** (age / half_life_seconds)
        weighed.append(
            dataclasses.replace(
                hit,
                score=(1 - weight) * hit.score + weight * recency,
                scores={**hit.scores, "recency": recency},
            )
        )
    return _best_first(weighed)


@dataclass(frozen=True, slots=True)
class Beside:
    """How many events before and after a hit to read, and the filters that they must pass.

    >>> Beside(reach=1).types
    """

    reach: int
    types: list[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    where: dict[str, Any] | None = None


async def with_neighbours(
    episodes: MemoryLog, hits: Sequence[Recalled], look: Beside, k: int
) -> list[Recalled]:
    """Return the hits, and events next to the best ``k``, which get a share of their scores.

    ::

        hits = await with_neighbours(episodes, hits, Beside(reach=1), k=5)
    """
    reach = look.reach
    beside = await asyncio.gather(*(_around(episodes, hit.event, look) for hit in hits[:k]))
    known = {_key(hit.event): hit for hit in hits}
    degraded = hits[0].degraded if hits else ""
    why = hits[0].explanation if hits else None
    if why is not None:
        why = Explanation(milliseconds=why.milliseconds)
    for event in (one for group in beside for one in group):
        known.setdefault(_key(event), Recalled(event, 0.0, (), {}, degraded, why))
    lent: dict[tuple[str, str], float] = {}
    positions = {
        (one.event.session_id, one.event.epoch, one.event.seq): one for one in known.values()
    }
    for (session, epoch, seq), one in positions.items():
        near = (
            positions.get((session, epoch, seq + step)) for step in range(-reach, reach + 1) if step
        )
        lent[_key(one.event)] = max((found.score for found in near if found), default=0.0)
    mixed = [_mixed(one, lent[key]) for key, one in known.items()]
    return _best_first([one for one in mixed if one.found_by])


def _mixed(one: Recalled, lent: float) -> Recalled:
    score = (one.score + NEIGHBOUR_WEIGHT * lent) / (1 + NEIGHBOUR_WEIGHT)
    if not lent:
        return dataclasses.replace(one, score=score)
    why = one.explanation
    if why is not None:
        why = dataclasses.replace(why, added={**why.added, "neighbour": lent})
    return dataclasses.replace(
        one,
        score=score,
        found_by=(*one.found_by, "neighbour"),
        scores={**one.scores, "neighbour": lent},
        explanation=why,
    )


async def _around(episodes: MemoryLog, event: Event, look: Beside) -> list[Event]:
    """Return the agent's events before and after this event in its session."""
    found = await episodes.between(
        event.agent_id,
        look.since or FIRST,
        look.until or LAST,
        session_id=event.session_id,
        types=look.types,
        where=look.where,
        cursor=dataclasses.replace(event, seq=event.seq - look.reach - 1).cursor,
        limit=2 * look.reach + 1,
    )
    return [one for one in found if one.epoch == event.epoch and one.seq <= event.seq + look.reach]


def _best_first(hits: Sequence[Recalled]) -> list[Recalled]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.event.id))


def _key(event: Event) -> tuple[str, str]:
    return (event.session_id, event.id)
