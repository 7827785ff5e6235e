"""Add queued events to the index of words."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.word_blocks import MAX_COUNT, Posting, word_blocks
from holdfast.values.codec import decode_json
from holdfast.values.errors import CodecError
from holdfast.values.recall_rules import LOOK_BACK, REACH, Reading, read_event
from holdfast.values.text import tokenize

_SQL = load("indexing")

BATCH = 1000
"""About how many events are indexed at once: ranges are claimed until they have this many."""

MERGE_AFTER = 64
"""After this many batches, the index blocks of an agent are merged."""

LOOKED_AT = 4
"""How many messages before a range are read at first: enough if three of them have text."""

_BOUNDS = ("key", "first", "last", "most", "shortest")
_MAX_NAME = 200

UNREADABLE = (CodecError, OverflowError, TypeError, ValueError)
"""The errors of an event that cannot be read. The events of other agents are still indexed."""

Fetch = Callable[..., Awaitable[Sequence[Any]]]


def stored_name(key: str) -> str:
    """Return a speaker's key in its stored form: a long key is replaced by its digest.

    >>> stored_name("ana b")
    'ana b'
    """
    # A key never begins with a space.
    return key if len(key) <= _MAX_NAME else " " + hashlib.sha256(key.encode()).hexdigest()


@dataclass(slots=True)
class IndexedEvent:
    """The fields of an event that the index stores and that an embedder reads."""

    session_key: int
    epoch: int
    seq: int
    length: int
    speaker: str
    said: bool
    asks: bool
    borrows: bool
    text: str
    context: str
    embedded: bool


@dataclass(slots=True)
class WordBatch:
    """Waiting events of one agent, prepared for its index."""

    agent: str
    version: int
    ranges: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Session, epoch and first number of each range, and its last number."""

    events: list[IndexedEvent] = field(default_factory=list)
    complete: bool = True
    """Whether enough messages before each range were read to know the context."""

    fresh: bool = True
    """Whether all events are new: none of them was indexed before."""

    _postings: dict[str, list[Posting]] = field(default_factory=dict)
    _seen: set[tuple[int, int, int]] = field(default_factory=set)
    _before: deque[tuple[int, Reading]] = field(default_factory=lambda: deque(maxlen=LOOK_BACK))
    _ahead: int = 0
    _said: int = 0

    def read(self, row: Any, looked_at: int) -> None:
        """Add a row of ``waiting_events``. Rows must be added in order."""
        _, _, session_key, epoch, first, last, ahead, numbered, at_epoch, seq, *content = row
        kind, when, body, embedded = content
        if (session_key, epoch, first) not in self.ranges:
            self.ranges[session_key, epoch, first] = last
            self._before.clear()
            self._ahead = self._said = 0
        if seq is None:
            return
        while self._before and self._before[-1][0] < seq - REACH:
            self._before.pop()
        before = [one.said for _, one in self._before if one.said is not None]
        found = read_event(kind, decode_json(body), when, before)
        if ahead:
            self._ahead += 1
        else:
            if self._ahead >= looked_at and self._said < LOOK_BACK:
                self.complete = False
            position = (session_key, at_epoch, seq)
            if numbered or position in self._seen:
                self.fresh = False
            else:
                self._seen.add(position)
                self._add(position, found, embedded=embedded)
        if found.said is not None:
            self._said += 1
            self._before.appendleft((seq, found))

    def _add(self, position: tuple[int, int, int], found: Reading, *, embedded: bool) -> None:
        words = Counter(tokenize(found.index_text))
        length = words.total()
        self.events.append(
            IndexedEvent(
                *position,
                length,
                stored_name(found.speaker),
                found.said is not None,
                found.asks,
                found.borrows,
                found.text,
                self._before[0][1].text if self._before else "",
                embedded,
            )
        )
        at = len(self.events)
        if length > MAX_COUNT:
            length = MAX_COUNT
            words = Counter({one: min(times, MAX_COUNT) for one, times in words.items()})
        for lexeme, times in words.items():
            self._postings.setdefault(lexeme, []).append((at, times, length))

    def arguments(self) -> tuple[Any, ...]:
        """Return the parameters of the statement ``index``, without the tenant."""
        slots = ("session_key", "epoch", "seq", "length", "speaker", "said", "asks", "borrows")
        blocks, levels = word_blocks(self._postings, len(self.events))
        numbers: list[int] = []
        starts = []
        for one in blocks:
            starts.append(len(numbers) + 1)
            numbers += one.numbers
        return (
            *(self.agent, self.version),
            *([one[slot] for one in self.ranges] for slot in range(3)),
            *([getattr(one, slot) for one in self.events] for slot in slots),
            *([getattr(one, slot) for one in blocks] for slot in _BOUNDS),
            starts,
            [one.words for one in blocks],
            [one.packed for one in blocks],
            numbers,
            levels,
        )


def batches(rows: Sequence[Any], looked_at: int = LOOKED_AT) -> list[WordBatch]:
    """Return the batches of rows of ``waiting_events``, one for each agent."""
    found: dict[str, WordBatch] = {}
    for row in rows:
        agent, version = row[:2]
        if agent not in found:
            found[agent] = WordBatch(agent, version)
        found[agent].read(row, looked_at)
    return list(found.values())


async def read_batches(
    fetch: Fetch, tenant: str, agents: Sequence[str], limit: int = BATCH
) -> list[WordBatch]:
    """Read about ``limit`` waiting events of agents, with the messages before them as context."""
    looked_at = LOOKED_AT
    while True:
        rows = await fetch(_SQL["unindexed"], tenant, agents, limit, looked_at)
        found = batches(rows, looked_at)
        if all(one.complete for one in found):
            return found
        looked_at *= 16


async def write_batch(fetch: Fetch, tenant: str, batch: WordBatch, *, merge_after: int) -> bool:
    """Add a batch to the index. Returns ``False`` if the index changed since the batch was read."""
    [[small]] = await fetch(_SQL["index"], tenant, *batch.arguments())
    if small >= merge_after:
        await fetch(_SQL["merge"], tenant, batch.agent)
    return bool(small)


async def write_embedded_batch(
    fetch: Fetch,
    tenant: str,
    batch: WordBatch,
    vectors: Mapping[int, Sequence[float]],
    model: tuple[str, int],
) -> bool:
    """Add a batch to the index with vectors, by event ordinal. Returns as ``write_batch`` does."""
    [[small]] = await fetch(
        *(_SQL["index_with_vectors"], tenant, *batch.arguments(), list(batch.ranges.values())),
        *(*model, list(vectors), [number for vector in vectors.values() for number in vector]),
    )
    return bool(small)


async def index_batch(fetch: Fetch, tenant: str, agent: str, *, limit: int = BATCH) -> int:
    """Index some of an agent's queued events. Returns how many; 0 if the queue is empty.

    If another process has indexed the batch meanwhile, the next one is read.
    """
    while found := await read_batches(fetch, tenant, [agent], limit):
        for batch in found:
            if await write_batch(fetch, tenant, batch, merge_after=MERGE_AFTER):
                return max(len(batch.events), 1)
    return 0
