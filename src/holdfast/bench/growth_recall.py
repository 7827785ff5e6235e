"""The part of ``holdfast bench growth`` on recall: an agent with a growing number of turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.bench.growth_rows import CALLS, Operation, Rows, measured
from holdfast.bench.hybrid_workload import Array, K, nearest, share
from holdfast.bench.index_size import Sizes, index_of, maintain, table_sizes
from holdfast.bench.recall_states import PATIENCE_SECONDS, OnceEmbedder, opened
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.values.content import ChatMessage
from holdfast.values.event_text import event_text
from holdfast.wiring.state import State

SIZES = (500, 5_000, 50_000, 200_000)
SESSION, BATCH = 500, 500
MAINTAINED = 5_000
"""After this many turns ``holdfast db maintain`` runs, as in a database in production."""

CHARACTERS = 124
DIMENSION = 64
WORDS, SKEW = 20_000, 1.3
"""The size of the vocabulary, and the exponent of its word frequencies (Zipf)."""

GROWS, WIRING = "turns of one agent", "postgres only"
BY_WORDS, BY_MEANING, BY_BOTH = ("recall 5 by words", "recall 5 by meaning", "recall 5 by both")
BARS = {
    "p50 by both at 50,000 turns, times that at 500": 4.0,
    "p95 by meaning at the most turns, times that at 500": 8.0,
    "share of the nearest 5 that meaning finds": 0.95,
    "turns indexed a second": 5000.0,
    "bytes of the index of words for a turn": 300.0,
}
AT_LEAST = ("share", "turns")
"""The prefixes of the bars that are minimums; the others are maximums."""


@dataclass(slots=True)
class TurnsGrown:
    """What is measured in addition to the times, at each size."""

    points: list[dict[str, Any]] = field(default_factory=list)

    def bars(self, rows: Rows) -> dict[str, dict[str, Any]]:
        """Return the bars: the target and the measured value of each."""
        values: dict[str, float] = {}
        both, near = rows.sizes((GROWS, WIRING, BY_BOTH)), rows.sizes((GROWS, WIRING, BY_MEANING))
        if {500, 50_000} <= both.keys():
            name = "p50 by both at 50,000 turns, times that at 500"
            values[name] = both[50_000]["p50_us"] / both[500]["p50_us"]
        if 500 in near and len(near) > 1:
            name = "p95 by meaning at the most turns, times that at 500"
            values[name] = near[max(near)]["p95_us"] / near[500]["p95_us"]
        if self.points:
            last = self.points[-1]
            name = "share of the nearest 5 that meaning finds"
            values[name] = min(one["fidelity_5"] for one in self.points)
            values["turns indexed a second"] = last["indexed_per_second"]
            values["bytes of the index of words for a turn"] = last["words_bytes_per_turn"]
        return {
            name: {
                "bar": bar,
                "got": round(values[name], 4),
                "met": values[name] >= bar if name.startswith(AT_LEAST) else values[name] <= bar,
            }
            for name, bar in BARS.items()
            if name in values
        }


def turns(count: int, *, seed: int = 7) -> Iterator[str]:
    """Yield texts of one length, in which some words are frequent and most are rare.

    >>> len(next(turns(1)))
    124
    """
    dice = np.random.default_rng(seed)
    while count > 0:
        part = min(count, 1000)
        said = np.minimum(dice.zipf(SKEW, size=(part, CHARACTERS // 3)), WORDS)
        for row in said.tolist():
            yield " ".join(map(_word, row))[:CHARACTERS]
        count -= part


_SYLLABLES = tuple("".join(pair) for pair in zip("bcdfghjklmnprstvwxyz", "aeio" * 5, strict=True))


def _word(number: int) -> str:
    """Return a different word for each number."""
    found = ""
    while number:
        number, rest = divmod(number, len(_SYLLABLES))
        found += _SYLLABLES[rest]
    return found + "n"


async def grow_turns(rows: Rows, url: str, most: int, *, crowd: int = 0) -> TurnsGrown:
    """Measure recall of one agent at each size, up to ``most`` turns.

    ``crowd`` is how many vectors other agents of the tenant have at the start. ::

        grown = await grow_turns(rows, url, 5000)
    """
    found = TurnsGrown()
    model = OnceEmbedder(HashEmbedder(DIMENSION))
    said: list[str] = []
    texts = turns(most)
    async with _states(url, model) as (plain, state):
        await _crowd(state, crowd)
        await maintain(url, patience_seconds=PATIENCE_SECONDS)
        empty = await table_sizes(url)
        for size in (one for one in SIZES if one <= most):
            indexed, seconds = 0, 0.0
            while len(said) < size:
                more = [next(texts) for _ in range(min(size - len(said), MAINTAINED))]
                await _record(state, len(said), more)
                said += more
                # Index before the vectors are made, so that the time is that of the words alone.
                jobs = await maintain(url, patience_seconds=PATIENCE_SECONDS)
                done, took = jobs["events indexed for recall"]
                indexed, seconds = indexed + done, seconds + took
            await state.ops.embed_pending()
            await maintain(url, patience_seconds=PATIENCE_SECONDS)
            known = [event_text("message", {"role": "user", "content": text}) for text in said]
            table = np.asarray(await model.embed(known), dtype=np.float32)
            fidelity = await _measure(rows, (plain, state), said, table)
            rate = round(indexed / seconds, 1)
            index = await _index(empty, url, size)
            found.points.append(
                {"size": size, "fidelity_5": fidelity, "indexed_per_second": rate} | index
            )
    return found


@asynccontextmanager
async def _states(url: str, model: OnceEmbedder) -> AsyncIterator[tuple[State, State]]:
    """Open one tenant twice: without an embedding model, and with it."""
    async with opened(url, "turns", None) as plain, opened(url, "turns", model) as state:
        yield plain, state


async def _crowd(state: State, vectors: int) -> None:
    dice = np.random.default_rng(3)
    for agent in range(vectors // SESSION):
        table = dice.normal(size=(SESSION, DIMENSION)).astype(np.float32)
        notes = [("note", {"at": at}) for at in range(SESSION)]
        memory = state.memory(f"crowd/{agent}", session_id=f"crowd-{agent}")
        await memory.record_many(notes, table.tolist())


async def _record(state: State, first: int, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), BATCH):
        at = first + start
        memory = state.memory("grown/turns", session_id=f"turns-{at // SESSION}")
        part = texts[start : start + BATCH]
        await memory.record_many(
            [ChatMessage.user(text, id=str(at + place)) for place, text in enumerate(part)]
        )


async def _measure(
    rows: Rows, states: tuple[State, State], said: Sequence[str], table: Array
) -> float:
    """Ask for some words of stored turns. Returns the share of the nearest turns that it found."""
    plain, fused = (state.memory("grown/turns") for state in states)
    dice = np.random.default_rng(len(said))
    chosen = dice.integers(0, len(said), CALLS + 5).tolist()
    asked = [" ".join(said[at].split()[2:7]) for at in chosen]
    vectors = await HashEmbedder(DIMENSION).embed(asked, mode="query")
    answers: dict[int, list[int]] = {}

    async def by_meaning(at: int) -> None:
        hits = await fused.recall(vectors[at], K)
        answers[at] = [int(hit.event.id) for hit in hits]

    operations: dict[str, Operation] = {
        BY_WORDS: lambda at: plain.recall(asked[at], K),
        BY_MEANING: by_meaning,
        BY_BOTH: lambda at: fused.recall(asked[at], K),
    }
    await measured(rows, (GROWS, WIRING), len(said), operations, CALLS)
    shares = [share(ids, nearest(table, vectors[at])) for at, ids in answers.items()]
    return round(float(np.mean(shares)), 4)


async def _index(empty: Sizes, url: str, size: int) -> dict[str, Any]:
    found = index_of(empty, await table_sizes(url), size)
    return {name: found[name] for name in found if name != "turns"}
