"""BM25 and the fusion of scores, the same for every engine.

BM25 adds up, over the query's lexemes that a text holds, how rare the lexeme is (``idf``) times how
much of the text it makes up (``saturation``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.values.errors import InvalidInputError

Key = TypeVar("Key")

K1 = 0.9
"""The ``k1`` of BM25: how soon a repeated lexeme stops adding weight."""

B = 0.4
"""The ``b`` of BM25: how much the length of a text lowers its score, from 0 to 1.

The pair (0.9, 0.4) is the usual one for passages. On the turns of LoCoMo it recalls more at 5 than
(1.2, 0.75), the pair for pages: 0.566 against 0.553. No other conversations were measured.
"""

LEXICAL_WEIGHT = 0.6
"""The share of the lexical arm in a fused score."""

LINK_WEIGHT = 0.25
"""The share of links, such as those to the entities that a query names, in a blended score."""


def idf(documents: int, holding: int) -> float:
    """Return the inverse document frequency of a lexeme, always above 0.

    ``holding`` of ``documents`` texts have it.

    >>> idf(100, 1) > idf(100, 50) > idf(100, 100) > 0
    True
    """
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def saturation(times: int, length: int, average_length: float) -> float:
    """Return the weight of a lexeme that occurs ``times`` in a text of ``length`` lexemes.

    >>> saturation(1, 10, 10.0) < saturation(2, 10, 10.0) < K1 + 1
    True
    """
    relative = length / average_length if average_length else 1.0
    return times * (K1 + 1) / (times + K1 * (1 - B + B * relative))


@dataclass(slots=True)
class LexicalIndex:
    """An in-process inverted index: which texts have a lexeme, how often, and their lengths.

    It ranks over the texts that were added to it, so an index belongs to one scope, such as one
    agent.

    >>> index = LexicalIndex()
    >>> index.add("m1", ["low", "tide"])
    >>> index.add("m2", ["high", "tide"])
    >>> scores = index.scores(["low", "tide"])
    >>> scores["m1"] > scores["m2"] > 0
    True
    """

    _postings: dict[str, dict[str, int]] = field(default_factory=dict)
    _lexemes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _lengths: dict[str, int] = field(default_factory=dict)
    _total_length: int = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def __contains__(self, id: object) -> bool:
        return id in self._lengths

    def add(self, id: str, tokens: Iterable[str]) -> None:
        """Index a text under its id. An existing id is replaced."""
        self.remove(id)
        counts = Counter(tokens)
        for lexeme, times in counts.items():
            self._postings.setdefault(lexeme, {})[id] = times
        self._lexemes[id] = tuple(counts)
        self._lengths[id] = counts.total()
        self._total_length += counts.total()

    def remove(self, id: str) -> bool:
        """Delete a text. Returns whether it was there."""
        if id not in self._lengths:
            return False
        for lexeme in self._lexemes.pop(id):
            holding = self._postings[lexeme]
            del holding[id]
            if not holding:
                del self._postings[lexeme]
        self._total_length -= self._lengths.pop(id)
        return True

    def holds(self, id: str, lexeme: str) -> bool:
        """Return whether a text has a lexeme."""
        return id in self._postings.get(lexeme, ())

    def scores(
        self,
        query_tokens: Iterable[str],
        only: Container[str] | Callable[[str], bool] | None = None,
    ) -> dict[str, float]:
        """Return the BM25 score of every text that has at least one of the query's lexemes.

        ``only`` limits the result to some texts. The weights are still those of the whole index, so
        that a score does not depend on a filter.
        """
        allowed = only if only is None or callable(only) else only.__contains__
        average = self._total_length / len(self._lengths) if self._lengths else 0.0
        found: dict[str, float] = {}
        # In the query's order, since the sum of floats depends on it.
        for lexeme in dict.fromkeys(query_tokens):
            holding = self._postings.get(lexeme)
            if not holding:
                continue
            weight = idf(len(self._lengths), len(holding))
            for text, times in holding.items():
                if allowed is None or allowed(text):
                    gain = weight * saturation(times, self._lengths[text], average)
                    found[text] = found.get(text, 0.0) + gain
        return found


def normalise(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Scale the scores of a single arm to (0, 1], in the same order; the best becomes 1.

    Scores above 0, such as BM25, keep their ratios. If one is 0 or less, as a cosine may be, all
    are shifted so that the least is 1, and then divided by the greatest.

    >>> normalise({"a": 4.0, "b": 1.0})
    {'a': 1.0, 'b': 0.25}
    >>> normalise({"a": 1.0, "b": 0.0})
    {'a': 1.0, 'b': 0.5}
    """
    if not scores:
        return {}
    least, greatest = min(scores.values()), max(scores.values())
    up = 0.0 if least > 0 else 1 - least
    return {text: (score + up) / (greatest + up) for text, score in scores.items()}


def fuse(
    lexical: Mapping[str, float],
    semantic: Mapping[str, float],
    *,
    lexical_weight: float = LEXICAL_WEIGHT,
) -> dict[str, float]:
    """Fuse the scores of two arms into one, in [0, 1], for every id that either arm found.

    Each arm is scaled to [0, 1] from its least to its greatest score, and gives 0 to an id that it
    did not find. If the semantic arm found an id that the lexical arm did not find, the least score
    of the lexical arm is 0, which is the BM25 of a text without a word of the query. An arm whose
    scores are all equal, or that found one id only, defines no order: it gives 1 if its score is
    above 0, else 0.

    >>> fused = fuse({"a": 3.0, "b": 1.0}, {"a": 0.2, "b": 0.4, "c": 0.3})
    >>> [(id, round(score, 2)) for id, score in fused.items()]
    [('a', 0.6), ('b', 0.6), ('c', 0.2)]
    """
    if not 0 <= lexical_weight <= 1:
        raise InvalidInputError("lexical_weight", f"must be from 0 to 1, not {lexical_weight!r}")
    unfound = dict.fromkeys(semantic, 0.0)
    left, right = _spread({**unfound, **lexical}), _spread(semantic)
    return {
        text: min(1.0, lexical_weight * score + (1 - lexical_weight) * right.get(text, 0.0))
        for text, score in left.items()
    }


def _spread(scores: Mapping[str, float]) -> dict[str, float]:
    if not scores:
        return {}
    least, greatest = min(scores.values()), max(scores.values())
    if least == greatest:
        return dict.fromkeys(scores, 1.0 if greatest > 0 else 0.0)
    return {text: (score - least) / (greatest - least) for text, score in scores.items()}


def blend(
    scores: Mapping[str, float], linked: Mapping[str, float], *, weight: float = LINK_WEIGHT
) -> dict[str, float]:
    """Return the weighted mean of an id's score and its score by links, both in [0, 1].

    An id that has only one of them gets 0 for the other. Without links the scores stay as they
    are.

    >>> blend({"a": 1.0, "b": 0.5}, {"b": 1.0, "c": 0.5})
    {'a': 0.75, 'b': 0.625, 'c': 0.125}
    """
    if not linked:
        return dict(scores)
    return {
        text: (1 - weight) * scores.get(text, 0.0) + weight * linked.get(text, 0.0)
        for text in {**scores, **linked}
    }
