"""Reranking of hits by a model of the caller's own, such as a cross-encoder."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from holdfast.values.errors import EngineError, HoldfastError, InvalidInputError, TimedOutError
from holdfast.values.events import Recalled

RERANKED = 20
"""How many hits of a search a reranker orders."""

LIMIT_SECONDS = 10.0
"""The time limit of one call, unless the reranker has its own ``limit_seconds``."""


@runtime_checkable
class Reranker(Protocol):
    """Scores the first hits of a search again: a model that reads the question and the hit.

    It may raise any error: recall calls it through ``rerank``. A call that never returns times
    out after 10 seconds, or the reranker's attribute ``limit_seconds``.
    """

    @abstractmethod
    async def rerank(self, question: str, hits: Sequence[Recalled]) -> Sequence[float]:
        """Return a score for each hit, in order; a higher score is better.

        ::

            scores = await reranker.rerank("which database?", hits)
        """


def check_reranker(field: str, value: object) -> Reranker:
    """Check that a value is a reranker.

    >>> check_reranker("reranker", 7)
    Traceback (most recent call last):
    ...
    holdfast.values.errors.InvalidInputError: reranker: must have a method rerank, int has none
    """
    if not isinstance(value, Reranker):
        raise InvalidInputError(
            field, f"must have a method rerank, {type(value).__name__} has none"
        )
    return value


async def rerank(reranker: Reranker, question: str, hits: Sequence[Recalled]) -> list[Recalled]:
    """Order the first ``RERANKED`` hits by a reranker. Raises ``EngineError`` for any error of it.

    The reranker only changes the order: the hit that it puts first gets the highest score of the
    search, and so on. ``scores["reranker"]`` is what the reranker gave. ::

        hits = await rerank(reranker, "which database?", hits)
    """
    first = hits[:RERANKED]
    if not first:
        return list(hits)
    given = await _scored(reranker, question, first)
    order = sorted(range(len(first)), key=lambda at: -given[at])
    ordered = [
        dataclasses.replace(
            first[at], score=place.score, scores={**first[at].scores, "reranker": given[at]}
        )
        for at, place in zip(order, first, strict=True)
    ]
    return [*ordered, *hits[RERANKED:]]


async def _scored(reranker: Reranker, question: str, hits: Sequence[Recalled]) -> list[float]:
    engine = f"reranker {type(reranker).__name__}"
    limit = float(getattr(reranker, "limit_seconds", LIMIT_SECONDS))
    clock = asyncio.timeout(limit)
    try:
        async with clock:
            scores = await reranker.rerank(question, list(hits))
        given = [float(score) for score in scores]
    except HoldfastError:
        raise
    except Exception as error:
        # A reranker is third-party code, and no foreign error may leave a contract.
        if isinstance(error, TimeoutError) and clock.expired():
            why = f"no answer in {limit:g} s: is it up? Its limit_seconds may be raised"
            raise TimedOutError(engine, why) from error
        raise EngineError(engine, f"{type(error).__name__}: {error}") from error
    if len(given) != len(hits):
        raise EngineError(
            engine,
            f"returned {len(given)} scores for {len(hits)} hits: it must return one for each",
        )
    if not all(map(math.isfinite, given)):
        raise EngineError(engine, "returned a score that is not finite")
    return given
