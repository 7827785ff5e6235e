"""The rules of recall, the same on every engine: which words an event is indexed by, and ranking.

An event is indexed by its own text, by the words of its day, and, if it answers a question, by the
words of that question. A search takes the first events of each arm (words, meaning) as candidates,
adds what the speaker, the session and adjacent events suggest, and fuses the arms. The weights were
chosen on one half of LoCoMo and checked on the other half and on other conversations
(``docs/decisions/0043-recall-by-rules.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast.values.event_text import event_text, message_speaker, message_text
from holdfast.values.ranking import normalise
from holdfast.values.sealed import blind_words
from holdfast.values.text import MAX_NAME_WORDS, name_key

CANDIDATES = 100
"""How many candidates each arm of a search returns at least."""

LOOK_BACK = 3
"""How many messages before an answer are searched for its question."""

REACH = 256
"""How far before an answer they may be, in sequence numbers: it limits what is read."""

ASKS_WEIGHT = 0.8
"""The factor of the lexical score of an event that ends with a question mark."""

SPEAKER_SHARE = 0.15
"""The share of the best score that is added to the events of the speaker whom a question names."""

SESSION_SHARE = 0.1
"""The share of the mean of its session's best three scores that is added to an event."""

SESSION_BEST = 3

NEAR_SHARE = 0.1
"""The share of the best score nearby that is added to an event; it falls with the distance."""

MAX_SPEAKER = 256
"""How many characters the key of a speaker may have; a longer one is not stored."""

NEAR_REACH = 4
NEAR_DECAY = 0.6

LEXICAL_WEIGHT = 0.4
"""The weight of the lexical score in a fused score, unless the embedder has its own."""

TIE = 1e-9
"""Scores closer than this are equal; then the position in the log decides."""

_QUESTION_MARKS = "?\uff1f\u061f\u037e"
_GREEK_MARK = ";"
_AFTER_MARK = " \t\r\n\"'\u2019\u201d)]}*_~"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message with text in a session, and its speaker.

    >>> Utterance("Ana", "low tide?").speaker
    'Ana'
    """

    speaker: str
    """The name of the speaker, else the role."""

    text: str


def utterance(type: str, payload: dict[str, Any]) -> Utterance | None:
    """Return what was said in an event; ``None`` if it is no message, or one without text.

    >>> utterance("message", {"role": "user", "name": "Ana", "content": "low tide"})
    Utterance(speaker='Ana', text='low tide')
    >>> utterance("decision", {"use": "postgres"})
    """
    if (blind := blind_words(payload)) is not None:
        return Utterance(blind.by, blind.said) if blind.by else None
    if type != "message" or payload.get("role") == "tool":
        return None
    text = message_text(payload)
    return Utterance(message_speaker(payload), text) if text.strip() else None


def borrowed_from(speaker: str, before: Sequence[Utterance]) -> Utterance | None:
    """Return the question that an utterance of ``speaker`` answers, or ``None``.

    ``before`` are the utterances before it in the same session, the nearest first; three are
    enough. The question is the nearest utterance of another speaker, if it has a question mark.

    >>> borrowed_from("Ben", [Utterance("Ana", "Which tide?")]).text
    'Which tide?'
    >>> borrowed_from("Ben", [Utterance("Ben", "Hm."), Utterance("Ana", "Low tide.")])
    """
    for one in before[:LOOK_BACK]:
        if one.speaker != speaker:
            return one if any(mark in one.text for mark in _QUESTION_MARKS) else None
    return None


def day_words(when: datetime) -> str:
    """Return the day of an event as words, so that a question about the day finds it.

    >>> day_words(datetime(2023, 5, 8, tzinfo=UTC))
    '8 May 2023'
    """
    day = when.astimezone(UTC)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def own_text(type: str, payload: dict[str, Any], when: datetime) -> str:
    """Return the text that an event is indexed by, without the question that it answers.

    >>> own_text("decision", {"use": "postgres"}, datetime(2023, 5, 8, tzinfo=UTC))
    'use: postgres 8 May 2023'
    """
    return f"{event_text(type, payload)} {_day(payload, when)}"


def _day(payload: dict[str, Any], when: datetime) -> str:
    blind = blind_words(payload)
    return day_words(when) if blind is None else blind.day


def index_text(
    type: str, payload: dict[str, Any], when: datetime, before: Sequence[Utterance]
) -> str:
    """Return the text that an event is indexed by, with the question that it answers.

    ``before`` is as in ``borrowed_from``.

    >>> said = {"role": "user", "name": "Ben", "content": "At noon."}
    >>> index_text("message", said, datetime(2023, 5, 8, tzinfo=UTC), [Utterance("Ana", "When?")])
    'Ben: At noon. 8 May 2023 When?'
    """
    own, said = own_text(type, payload, when), utterance(type, payload)
    lent = borrowed_from(said.speaker, before) if said else None
    return f"{own} {lent.text}" if lent else own


def context(type: str, payload: dict[str, Any], before: Sequence[Utterance]) -> str:
    """Return what an embedder may read before the text of an event: the utterance before it.

    Empty if there is none, or if the event is no utterance. ``before`` is as in ``borrowed_from``.

    >>> said = {"role": "user", "name": "Ben", "content": "At noon."}
    >>> context("message", said, [Utterance("Ana", "When?")])
    'Ana: When?'
    """
    if not before or utterance(type, payload) is None:
        return ""
    return f"{before[0].speaker}: {before[0].text}"


def asks(type: str, payload: dict[str, Any]) -> bool:
    """Return whether an event ends with a question mark.

    >>> asks("message", {"role": "user", "content": "Which tide?"})
    True
    """
    said = utterance(type, payload)
    return said is not None and _ends_with_mark(said.text)


def _ends_with_mark(said: str) -> bool:
    text = said.rstrip(_AFTER_MARK)
    if text.endswith(tuple(_QUESTION_MARKS)):
        return True
    return text.endswith(_GREEK_MARK) and any("\u0370" <= char <= "\u03ff" for char in text)


def speaker_key(type: str, payload: dict[str, Any]) -> str:
    """Return the lookup key of the name of a message's speaker; empty if it has no name.

    It is also empty if the name is too long to be looked for in questions.

    >>> speaker_key("message", {"role": "user", "name": "Ana B", "content": "low tide"})
    'ana b'
    """
    if (blind := blind_words(payload)) is not None:
        return blind.name
    if type != "message":
        return ""
    name = payload.get("name")
    if not isinstance(name, str) or len(name) > 2 * MAX_SPEAKER:
        return ""
    key = name_key(name)
    return key if len(key) <= MAX_SPEAKER and key.count(" ") < MAX_NAME_WORDS else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an index and an embedder need of an event, computed together because that is faster.

    >>> Reading("Ben: At noon.", "Ben: At noon. 8 May 2023 When?", None, True, False, "ben").borrows
    True
    """

    text: str
    """See ``event_text``."""

    index_text: str
    said: Utterance | None
    borrows: bool
    asks: bool
    speaker: str
    """See ``speaker_key``."""


def read_event(
    type: str, payload: dict[str, Any], when: datetime, before: Sequence[Utterance]
) -> Reading:
    """Return the results of ``index_text``, ``utterance``, ``asks`` and ``speaker_key``.

    >>> read_event("note", {"tide": "low"}, datetime(2023, 5, 8, tzinfo=UTC), []).index_text
    'tide: low 8 May 2023'
    """
    said = utterance(type, payload)
    blind = blind_words(payload)
    plain = said is not None and blind is None
    text = f"{said.speaker}: {said.text}" if said and plain else event_text(type, payload)
    lent = borrowed_from(said.speaker, before) if said else None
    own = f"{text} {day_words(when) if blind is None else blind.day}"
    return Reading(
        text,
        f"{own} {lent.text}" if lent else own,
        said,
        lent is not None,
        said is not None and _ends_with_mark(said.text),
        speaker_key(type, payload),
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that an arm found, and what the rules need to know of it.

    >>> Candidate("e1", ("s1", 1, 1), lexical=2.3).semantic
    """

    key: Any
    """The engine's own key of the event."""

    position: tuple[str, int, int]
    """Its session, epoch and seq."""

    lexical: float = 0.0
    """The BM25 score; 0 if the event has none of the words."""

    semantic: float | None = None
    """The cosine similarity; ``None`` if the event has no vector."""

    asks: bool = False
    speaker: str = ""
    """See ``speaker_key``."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score in (0, 1], and the parts of it that each arm and rule gave.

    >>> Ranked(Candidate("e1", ("s1", 1, 1)), 1.0, {"lexical": 2.3}).found_by
    ('lexical',)
    """

    candidate: Candidate
    score: float
    scores: dict[str, float]

    @property
    def found_by(self) -> tuple[str, ...]:
        """The arms that gave it a score: ``lexical``, ``semantic`` or both."""
        return tuple(arm for arm in ("lexical", "semantic") if arm in self.scores)


def rank(
    candidates: Collection[Candidate],
    *,
    speakers: Iterable[str] = (),
    lexical_weight: float = LEXICAL_WEIGHT,
) -> list[Ranked]:
    """Rank candidates, the best first; the position in the log decides between equal scores.

    ``speakers`` are the keys of those speakers of the searched log whom the question names.

    >>> first, second = Candidate("a", ("s1", 1, 1), 1.0), Candidate("b", ("s1", 1, 2), 3.0)
    >>> [one.candidate.key for one in rank([first, second])]
    ['b', 'a']
    """
    found = sorted(candidates, key=lambda one: one.position)
    if not found:
        return []
    words, given = _with_priors(found, set(speakers))
    near = [one.semantic for one in found]
    scores = words
    if any(one is not None for one in near):
        fused = zip(_z_scores(words), _z_scores(near), strict=True)
        scores = [lexical_weight * left + (1 - lexical_weight) * right for left, right in fused]
    shown = normalise(dict(enumerate(scores)))
    best = in_order(range(len(found)), lambda at: shown[at])
    return [Ranked(found[at], shown[at], given[at]) for at in best]


def in_order(found: Iterable[int], score: Callable[[int], float]) -> list[int]:
    """Return indexes by score, the best first; the lower index first if scores are equal.

    >>> in_order([0, 1, 2], [0.5, 0.5 + 1e-12, 0.7].__getitem__)
    [2, 0, 1]
    """
    best = sorted(found, key=lambda at: (-score(at), at))
    start = 0
    for end in range(1, len(best) + 1):
        if end == len(best) or score(best[end - 1]) - score(best[end]) >= TIE:
            best[start:end] = sorted(best[start:end])
            start = end
    return best


def _with_priors(
    found: Sequence[Candidate], speakers: Collection[str]
) -> tuple[list[float], list[dict[str, float]]]:
    """Return the lexical score of each candidate with what the rules add, and its parts."""
    parts = [{"lexical": one.lexical} if one.lexical else {} for one in found]
    for part, one in zip(parts, found, strict=True):
        if one.semantic is not None:
            part["semantic"] = one.semantic
    words = [one.lexical * (ASKS_WEIGHT if one.asks else 1) for one in found]
    best = max(words)
    if best <= 0:
        return words, parts
    if len(speakers) == 1:
        for at, one in enumerate(found):
            if one.speaker in speakers:
                parts[at]["speaker"] = SPEAKER_SHARE * best
                words[at] += SPEAKER_SHARE * best
    _add(words, parts, "session", _by_session(found, words))
    _add(words, parts, "near", _by_nearness(found, words))
    return words, parts


def _add(words: list[float], parts: list[dict[str, float]], rule: str, more: list[float]) -> None:
    for at, gain in enumerate(more):
        if gain:
            parts[at][rule] = gain
            words[at] += gain


def _by_session(found: Sequence[Candidate], words: Sequence[float]) -> list[float]:
    sessions: dict[str, list[float]] = {}
    for one, score in zip(found, words, strict=True):
        sessions.setdefault(one.position[0], []).append(score)
    gains = {
        session: SESSION_SHARE * math.fsum(sorted(scores)[-SESSION_BEST:]) / SESSION_BEST
        for session, scores in sessions.items()
    }
    return [gains[one.position[0]] for one in found]


def _by_nearness(found: Sequence[Candidate], words: Sequence[float]) -> list[float]:
    """Return what each candidate gets from those nearby; they are sorted by position."""
    best = [0.0] * len(found)
    for at, one in enumerate(found):
        session, epoch, seq = one.position
        for other in range(at + 1, len(found)):
            there = found[other].position
            step = there[2] - seq
            if there[0] != session or there[1] != epoch or step > NEAR_REACH:
                break
            weight = NEAR_DECAY ** (step - 1)
            best[at] = max(best[at], words[other] * weight)
            best[other] = max(best[other], words[at] * weight)
    return [NEAR_SHARE * one for one in best]


def _z_scores(scores: Sequence[float | None]) -> list[float]:
    """Return how many standard deviations each score is above the mean; 0 for an unknown one."""
    known = [score for score in scores if score is not None]
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in known) / len(known))
    if deviation == 0:
        return [0.0] * len(scores)
    return [0.0 if score is None else (score - mean) / deviation for score in scores]
