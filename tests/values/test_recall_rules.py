"""The rules of recall, where the contract suite cannot see the numbers."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime

import pytest

from holdfast.values.recall_rules import (
    Candidate,
    Utterance,
    asks,
    borrowed_from,
    context,
    index_text,
    rank,
    speaker_key,
)

DAY = datetime(2023, 5, 8, tzinfo=UTC)


def _one(key: str, lexical: float, semantic: float | None = None, at: int = 0) -> Candidate:
    # Sessions of their own, so that nearness adds nothing.
    return Candidate(key, (f"s{at}{key}", 1, 1), lexical, semantic)


def test_fused_scores_are_weighted_z_scores() -> None:
    words, near = {"a": 3.0, "b": 2.0, "c": 0.0}, {"a": 0.1, "b": 0.5, "c": 0.9}
    found = rank([_one(key, words[key], near[key]) for key in "abc"], lexical_weight=0.4)
    # The session adds a tenth of a third of the only score of each.
    left = {key: score * (1 + 0.1 / 3) for key, score in words.items()}
    fused = {
        key: 0.4 * (left[key] - statistics.fmean(left.values())) / statistics.pstdev(left.values())
        + 0.6 * (near[key] - statistics.fmean(near.values())) / statistics.pstdev(near.values())
        for key in "abc"
    }
    least = min(fused.values())
    expected = {
        key: (score + 1 - least) / (max(fused.values()) + 1 - least) for key, score in fused.items()
    }
    assert {one.candidate.key: one.score for one in found} == pytest.approx(expected)
    assert [one.candidate.key for one in found] == ["c", "b", "a"]


def test_the_weight_decides_which_arm_ranks() -> None:
    found = [_one("a", 3.0, 0.1), _one("b", 1.0, 0.9)]
    assert rank(found, lexical_weight=1.0)[0].candidate.key == "a"
    assert rank(found, lexical_weight=0.0)[0].candidate.key == "b"


def test_an_event_without_a_vector_is_neither_near_nor_far() -> None:
    found = rank([_one("a", 1.0, 0.9), _one("b", 1.0, None), _one("c", 1.0, 0.1)])
    assert [one.candidate.key for one in found] == ["a", "b", "c"]
    assert found[1].found_by == ("lexical",)
    assert found[0].found_by == ("lexical", "semantic")


def test_equal_arms_of_one_candidate_or_of_all_are_no_division_by_zero() -> None:
    assert [one.score for one in rank([_one("a", 1.0, 0.5)])] == [1.0]
    assert {one.score for one in rank([_one("a", 1.0, 0.5), _one("b", 1.0, 0.5)])} == {1.0}
    assert rank([]) == []


def test_scores_closer_than_a_tie_go_by_position() -> None:
    first, second = _one("a", 1.0, at=1), _one("b", 1.0 + 1e-12, at=2)
    assert [one.candidate.key for one in rank([second, first])] == ["a", "b"]
    assert [one.candidate.key for one in rank([_one("b", 1.1, at=2), first])] == ["b", "a"]


def test_two_named_speakers_are_none() -> None:
    found = [Candidate("a", ("s1", 1, 1), 1.0, speaker="ana")]
    assert "speaker" in rank(found, speakers=["ana", "ana"])[0].scores
    assert "speaker" not in rank(found, speakers=["ana", "ben"])[0].scores


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Ana", "ana"),
        ("Ana-Maria", "ana maria"),
        ("", ""),
        ("!?", ""),
        (7, ""),
        (None, ""),
        ("a b c d e f", "a b c d e f"),
        ("a b c d e f g", ""),
        ("n" * 256, "n" * 256),
        ("n" * 257, ""),
        ("n" * 1_000_000, ""),
        ("\ufdfa" * 200, ""),
    ],
)
def test_a_speaker_has_a_short_key_or_none(name: object, key: str) -> None:
    assert speaker_key("message", {"role": "user", "name": name, "content": "x"}) == key
    assert speaker_key("decision", {"name": name}) == ""


def test_only_an_utterance_borrows_and_has_a_context() -> None:
    before = [Utterance("Ana", "Which tide?")]
    assert index_text("decision", {"use": "boat"}, DAY, before) == "use: boat 8 May 2023"
    assert context("decision", {"use": "boat"}, before) == ""
    said = {"role": "user", "name": "Ben", "content": "Low."}
    assert context("message", said, before) == "Ana: Which tide?"
    assert context("message", said, []) == ""
    assert context("message", {**said, "content": " "}, before) == ""


@pytest.mark.parametrize("mark", ["?", "\uff1f", "\u061f", "\u037e"])
def test_every_question_mark_lends_and_asks(mark: str) -> None:
    assert borrowed_from("Ben", [Utterance("Ana", f"tide{mark} Well.")]) is not None
    assert asks("message", {"role": "user", "content": f'"tide{mark}" '})
    assert not asks("message", {"role": "user", "content": f"tide{mark} Well."})
    assert not asks("message", {"role": "tool", "content": f"tide{mark}"})


def test_a_semicolon_asks_in_greek_only() -> None:
    assert asks("message", {"role": "user", "content": "\u03c0\u03bf\u03cd;"})
    assert not asks("message", {"role": "user", "content": "for (;;);"})
