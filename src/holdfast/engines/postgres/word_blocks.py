"""The rows of the index of words: up to 256 postings of a lexeme, or many rare lexemes, in one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

Posting: TypeAlias = tuple[int, int, int]
"""The ordinal of an event, how often it has the lexeme, and its length."""

MAX_COUNT = (1 << 21) - 1
"""The largest times and length that a posting holds."""

GROUP_FROM = 64
"""A batch of fewer events has a row for each lexeme, until rows are merged."""

RARE = 64
"""A lexeme with fewer postings in a batch is grouped with others."""

GROUP_BYTES = 1700
"""The largest row of a group: a page holds several, and nothing is compressed."""

_BLOCK = 256
_WIDE_BITS = 21
_MOST_BOUND = 32767
_LEVELS = range(3, 17)


@dataclass(frozen=True, slots=True)
class WordBlock:
    """A row of the index of words; the ordinals are those of a batch."""

    key: str
    """The lexeme, or the label of a group."""

    first: int
    last: int
    most: int
    shortest: int
    words: str | None
    packed: bool
    numbers: Sequence[int]


def word_blocks(
    postings: Mapping[str, Sequence[Posting]], events: int
) -> tuple[list[WordBlock], int]:
    """Return the rows of a batch, and the bits of the levels of their labels.

    >>> [block], levels = word_blocks({"tide": [(1, 2, 9)]}, 1)
    >>> (block.key, block.numbers, levels)
    ('tide', [4105], 0)
    """
    alone: list[str] = []
    groups: dict[int, list[str]] = {}
    level = 0
    if events >= GROUP_FROM:
        rare = [lexeme for lexeme, held in postings.items() if len(held) < RARE and _fits(held)]
        total = sum(len(postings[lexeme]) for lexeme in rare)
        level = min(max((max(total, 1) // 128).bit_length(), _LEVELS[0]), _LEVELS[-1])
        for lexeme in rare:
            groups.setdefault(word_hash(lexeme) & ((1 << level) - 1), []).append(lexeme)
    blocks = []
    grouped: set[str] = set()
    for bits, lexemes in groups.items():
        together, size = [], 0
        for lexeme in sorted(lexemes):
            size += 4 * len(postings[lexeme]) + len(lexeme.encode()) + 5
            if size <= GROUP_BYTES:
                together.append(lexeme)
        grouped.update(together)
        blocks.append(_group(f" {level}:{bits}", together, postings))
    alone = [lexeme for lexeme in postings if lexeme not in grouped]
    for lexeme in alone:
        held = postings[lexeme]
        blocks += [
            _block(lexeme, held[start : start + _BLOCK]) for start in range(0, len(held), _BLOCK)
        ]
    return blocks, 1 << level if grouped else 0


def word_hash(lexeme: str) -> int:
    """Return 16 bits of the digest of a lexeme, as ``word_hash`` in SQL does."""
    return int.from_bytes(hashlib.sha256(lexeme.encode()).digest()[:2])


def _fits(held: Sequence[Posting]) -> bool:
    """Return whether postings have a packed form."""
    return (
        max(times for _, times, _ in held) < 1 << 4
        and max(length for _, _, length in held) < 1 << 11
        and held[-1][0] - held[0][0] < 1 << 16
    )


def _block(lexeme: str, held: Sequence[Posting]) -> WordBlock:
    first, packed = held[0][0], _fits(held)
    numbers = (
        _packed(held, first)
        if packed
        else [
            (at - first) << 2 * _WIDE_BITS | times << _WIDE_BITS | length
            for at, times, length in held
        ]
    )
    return WordBlock(lexeme, first, held[-1][0], *_bounds(held), None, packed, numbers)


def _group(
    label: str, words: Sequence[str], postings: Mapping[str, Sequence[Posting]]
) -> WordBlock:
    held = [one for word in words for one in postings[word]]
    first = min(at for at, _, _ in held)
    ends = accumulate((len(postings[word]) for word in words), initial=len(words) + 1)
    return WordBlock(
        label,
        first,
        max(at for at, _, _ in held),
        *_bounds(held),
        " ".join(words),
        packed=True,
        numbers=[*ends, *_packed(held, first)],
    )


def _packed(held: Iterable[Posting], first: int) -> list[int]:
    return [(at - first) << 15 | times << 11 | length for at, times, length in held]


def _bounds(held: Iterable[Posting]) -> tuple[int, int]:
    """Return the highest ``times`` and the shortest ``length``, at most ``_MOST_BOUND`` each."""
    most = max(times for _, times, _ in held)
    return min(most, _MOST_BOUND), min(_MOST_BOUND, *(length for _, _, length in held))
