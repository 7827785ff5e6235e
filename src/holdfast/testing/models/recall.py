"""A naive recall by words: every rule computed from the whole log, for every question."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from holdfast.values.event_text import event_text, message_speaker, message_text
from holdfast.values.events import Event, Recalled
from holdfast.values.ranking import K1, B
from holdfast.values.text import name_key, tokenize

MONTHS = "January February March April May June July August September October November December"


def naive_recall(
    log: Sequence[Event], query: str, limit: int, passes: Callable[[Event], bool]
) -> list[Recalled]:
    """Return the best events of a log by words; ``log`` has all events of the searched agents."""
    asked = list(dict.fromkeys(tokenize(query)))
    words: dict[tuple[str, int, int], float] = {}
    for agent in {str(one.agent_id) for one in log}:
        words |= _bm25([one for one in log if str(one.agent_id) == agent], asked)
    found = [one for one in log if words[_at(one)] > 0 and passes(one)]
    found = _in_order(found, words)[: max(100, limit)]
    if not found:
        return []

    scores = {_at(one): {"lexical": words[_at(one)]} for one in found}
    total = {_at(one): words[_at(one)] * (0.8 if _asks(one) else 1) for one in found}
    best = max(total.values())
    named = {name_key(_name(one)) for one in log if _is_in(_name(one), query)}
    for one in found:
        if len(named) == 1 and name_key(_name(one)) in named:
            scores[_at(one)]["speaker"] = 0.15 * best
    total = _plus(total, scores, "speaker")
    for one in found:
        session = [total[_at(other)] for other in found if other.session_id == one.session_id]
        scores[_at(one)]["session"] = 0.1 * sum(sorted(session, reverse=True)[:3]) / 3
    total = _plus(total, scores, "session")
    for one in found:
        near = [
            total[_at(other)] * 0.6 ** (abs(other.seq - one.seq) - 1)
            for other in found
            if (other.session_id, other.epoch) == (one.session_id, one.epoch)
            and 1 <= abs(other.seq - one.seq) <= 4
        ]
        if near:
            scores[_at(one)]["near"] = 0.1 * max(near)
    total = _plus(total, scores, "near")

    best = max(total.values())
    total = {key: score / best for key, score in total.items()}
    hits = []
    for one in _in_order(found, total)[:limit]:
        own = tokenize(_own_text(one))
        lent = tokenize(_borrowed(one, log))
        answers = any(word in lent and word not in own for word in asked)
        found_by = ("lexical", "answer") if answers else ("lexical",)
        hits.append(Recalled(one, total[_at(one)], found_by, scores[_at(one)]))
    return hits


def _plus(
    total: dict[tuple[str, int, int], float],
    scores: dict[tuple[str, int, int], dict[str, float]],
    rule: str,
) -> dict[tuple[str, int, int], float]:
    return {key: score + scores[key].get(rule, 0.0) for key, score in total.items()}


def _bm25(log: Sequence[Event], asked: Sequence[str]) -> dict[tuple[str, int, int], float]:
    """Okapi BM25 by the book, over every text of one agent, for every word."""
    texts = [tokenize(f"{_own_text(one)} {_borrowed(one, log)}") for one in log]
    average = sum(map(len, texts)) / max(1, len(texts))
    found = {}
    for event, words in zip(log, texts, strict=True):
        score = 0.0
        for word in asked:
            holding = sum(word in other for other in texts)
            rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            times = words.count(word)
            share = len(words) / average if average else 1.0
            score += rarity * times * (K1 + 1) / (times + K1 * (1 - B + B * share))
        found[_at(event)] = score
    return found


def _own_text(event: Event) -> str:
    day = event.occurred_at
    month = MONTHS.split()[day.month - 1]
    return f"{event_text(event.type, event.payload)} {day.day} {month} {day.year}"


def _borrowed(event: Event, log: Sequence[Event]) -> str:
    """Return the text of the question that an event answers, or nothing."""
    if not _said(event):
        return ""
    before = [
        one
        for one in log
        if (one.agent_id, one.session_id) == (event.agent_id, event.session_id)
        and (one.epoch, one.seq) < (event.epoch, event.seq)
        and event.seq - one.seq <= 256
        and _said(one)
    ]
    before.sort(key=lambda one: (one.epoch, one.seq), reverse=True)
    others = [
        one for one in before[:3] if message_speaker(one.payload) != message_speaker(event.payload)
    ]
    question = _said(others[0]) if others else ""
    return question if "?" in question else ""


def _said(event: Event) -> str:
    if event.type != "message" or event.payload.get("role") == "tool":
        return ""
    text = message_text(event.payload)
    return text if text.strip() else ""


def _asks(event: Event) -> bool:
    return _said(event).rstrip().endswith("?")


def _name(event: Event) -> str:
    return str(event.payload.get("name", "")) if event.type == "message" else ""


def _is_in(name: str, query: str) -> bool:
    return bool(name_key(name)) and f" {name_key(name)} " in f" {name_key(query)} "


def _at(event: Event) -> tuple[str, int, int]:
    return (event.session_id, event.epoch, event.seq)


def _in_order(found: Sequence[Event], scores: dict[tuple[str, int, int], float]) -> list[Event]:
    """Sort by score; scores that are closer than 1e-9 are equal, and the position decides."""
    groups: list[list[Event]] = []
    last = math.inf
    for one in sorted(found, key=lambda one: -scores[_at(one)]):
        if not groups or last - scores[_at(one)] >= 1e-9:
            groups.append([])
        groups[-1].append(one)
        last = scores[_at(one)]
    return [one for group in groups for one in sorted(group, key=_at)]
