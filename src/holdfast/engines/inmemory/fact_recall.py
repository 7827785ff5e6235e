"""Recall of facts: by words, by meaning, by links, and by all of them combined."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.engines.cosine import cosines
from holdfast.engines.inmemory.facts import Fact, Facts
from holdfast.spi.long_term import FactFilter, FactQuestion
from holdfast.values.facts import Memory, RecallMode
from holdfast.values.ranking import blend, fuse, normalise


def recall(facts: Facts, wanted: FactFilter, question: FactQuestion) -> list[Memory]:
    """Return the best facts among those that pass the filter."""
    allowed = {fact.id: fact for fact in facts.live() if fact.fits(wanted)}
    arms = _arms(facts, question, allowed)
    scores = _scores(question.mode, arms)
    best = sorted(scores, key=lambda key: (-scores[key], -allowed[key].number))[: wanted.limit]
    return [
        allowed[key].to_memory(scores[key], tuple(name for name, arm in arms.items() if key in arm))
        for key in best
    ]


def _arms(
    facts: Facts, question: FactQuestion, allowed: Mapping[str, Fact]
) -> dict[str, dict[str, float]]:
    arms: dict[str, dict[str, float]] = {"text": {}, "vector": {}, "graph": {}}
    if question.mode in {"text", "hybrid"}:
        arms["text"] = facts.words(question.text, question.language, allowed.__contains__)
    if question.vector is not None:
        held = facts.vectors(question)
        arms["vector"] = cosines(
            question.vector, {key: vector for key, vector in held.items() if key in allowed}
        )
    for entity, counts in question.entities.items():
        for key in facts.links(entity):
            if key in allowed:
                arms["graph"][key] = max(counts, arms["graph"].get(key, 0.0))
    return arms


def _scores(mode: RecallMode, arms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    match mode:
        case "text":
            return normalise(arms["text"])
        case "vector":
            return {key: (1 + cosine) / 2 for key, cosine in arms["vector"].items()}
        case "graph":
            return dict(arms["graph"])
        case "hybrid":
            if not arms["vector"]:
                return blend(normalise(arms["text"]), arms["graph"])
            return blend(fuse(arms["text"], arms["vector"]), arms["graph"])
