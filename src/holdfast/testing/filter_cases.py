"""The truth table of the filter language: a row for each question engines could answer apart.

The contract suite asks every engine each row, the one evaluator is tested by it, and the table
in ``docs/reference/filters.md`` is made of it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class FilterCase(NamedTuple):
    """A filter, the metadata of one document, and whether the filter lets it through."""

    filter: dict[str, Any]
    metadata: dict[str, Any]
    matches: bool


class Refusal(NamedTuple):
    """A filter that cannot be read, and the path that its error names."""

    filter: Any
    field: str


def _on(metadata: dict[str, Any], *cells: tuple[dict[str, Any], bool]) -> tuple[FilterCase, ...]:
    return tuple(FilterCase(asked, metadata, matches) for asked, matches in cells)


YES, NO = True, False

TRUTH: dict[str, tuple[FilterCase, ...]] = {
    "a filter of a key and a value asks for equality": (
        *_on(
            {"k": "a", "n": 2},
            ({"k": "a"}, YES),
            ({"k": {"$eq": "a"}}, YES),
            ({"k": "A"}, NO),
            ({"k": "a "}, NO),
            ({"k": ""}, NO),
            ({"n": 2}, YES),
            ({"n": "2"}, NO),
            ({}, YES),
        ),
        *_on({"k": "e\u0301"}, ({"k": "é"}, NO), ({"k": "e\u0301"}, YES)),
        *_on({"k": "a\x00b"}, ({"k": "a\x00b"}, YES), ({"k": "a"}, NO)),
    ),
    "a list in a filter means any of": _on(
        {"k": "a"},
        ({"k": ["a", "b"]}, YES),
        ({"k": ["b", "c"]}, NO),
        ({"k": {"$in": ["a", 1, None]}}, YES),
        ({"k": {"$in": [1, None]}}, NO),
        ({"k": {"$nin": ["b"]}}, YES),
        ({"k": {"$nin": ["a", "b"]}}, NO),
    ),
    "several conditions in a filter must all hold": _on(
        {"a": 1, "b": 5},
        ({"a": 1, "b": 5}, YES),
        ({"a": 1, "b": 6}, NO),
        ({"b": {"$gte": 5, "$lt": 9}}, YES),
        ({"b": {"$gte": 5, "$lt": 5}}, NO),
        ({"$and": [{"a": 1}, {"b": {"$gt": 4}}]}, YES),
        ({"$and": [{"a": 1}, {"b": {"$gt": 5}}]}, NO),
        ({"$or": [{"a": 2}, {"b": 5}]}, YES),
        ({"$or": [{"a": 2}, {"b": 6}]}, NO),
        ({"a": 1, "$or": [{"b": 5}, {"b": 6}]}, YES),
        ({"a": 2, "$or": [{"b": 5}, {"b": 6}]}, NO),
    ),
    "a filter distinguishes a missing key from a null": (
        *_on(
            {"k": None},
            ({"k": None}, YES),
            ({"k": {"$in": [None, 1]}}, YES),
            ({"k": {"$ne": None}}, NO),
            ({"k": {"$exists": True}}, YES),
            ({"k": {"$exists": False}}, NO),
            ({"k": 0}, NO),
            ({"k": ""}, NO),
            ({"k": False}, NO),
            ({"k": "null"}, NO),
        ),
        *_on(
            {},
            ({"k": None}, NO),
            ({"k": {"$in": [None, 1]}}, NO),
            ({"k": {"$ne": None}}, YES),
            ({"k": {"$exists": True}}, NO),
            ({"k": {"$exists": False}}, YES),
            ({"k": {"$gt": 0}}, NO),
        ),
    ),
    "a filter distinguishes true from 1 and not 1 from a float": (
        *_on(
            {"k": True}, ({"k": True}, YES), ({"k": 1}, NO), ({"k": 1.0}, NO), ({"k": "true"}, NO)
        ),
        *_on({"k": False}, ({"k": False}, YES), ({"k": 0}, NO), ({"k": {"$ne": 0}}, YES)),
        *_on({"k": 1}, ({"k": 1.0}, YES), ({"k": True}, NO), ({"k": {"$nin": [True]}}, YES)),
        *_on({"k": 1.0}, ({"k": 1}, YES), ({"k": {"$in": [1]}}, YES), ({"k": "1.0"}, NO)),
        *_on({"k": -0.0}, ({"k": 0}, YES)),
        *_on(
            {"k": 2**53 + 1},
            ({"k": 2**53 + 1}, YES),
            ({"k": 2**53}, NO),
            ({"k": float(2**53)}, NO),
            ({"k": {"$gt": float(2**53)}}, YES),
        ),
        *_on({"k": 1e16}, ({"k": 10**16}, YES), ({"k": {"$lt": 10**16 + 1}}, YES)),
        *_on({"k": 2.0**60}, ({"k": 2.0**60}, YES), ({"k": 2**60}, NO)),
    ),
    "a filter orders numbers with numbers and text with text only": (
        *_on(
            {"k": 5},
            ({"k": {"$gt": 4}}, YES),
            ({"k": {"$gt": 5}}, NO),
            ({"k": {"$gte": 5.0}}, YES),
            ({"k": {"$lt": 5.5}}, YES),
            ({"k": {"$lte": 4.9}}, NO),
            ({"k": {"$gt": "4"}}, NO),
            ({"k": {"$lt": "9"}}, NO),
        ),
        *_on(
            {"k": "5"}, ({"k": {"$gt": 4}}, NO), ({"k": {"$lt": 9}}, NO), ({"k": {"$gt": "4"}}, YES)
        ),
        *_on({"k": True}, ({"k": {"$gte": 1}}, NO), ({"k": {"$gt": 0}}, NO)),
        *_on({"k": None}, ({"k": {"$lt": 1}}, NO), ({"k": {"$gte": ""}}, NO)),
        *_on({"k": {"n": 5}}, ({"k": {"$gt": 0}}, NO), ({"k": {"$gte": ""}}, NO)),
    ),
    "a filter orders text by code points": (
        *_on({"k": "Z"}, ({"k": {"$lt": "a"}}, YES), ({"k": {"$gt": "a"}}, NO)),
        *_on({"k": "é"}, ({"k": {"$gt": "z"}}, YES), ({"k": {"$lt": "f"}}, NO)),
        *_on({"k": "a"}, ({"k": {"$lt": "a "}}, YES), ({"k": {"$gt": ""}}, YES)),
        *_on({"k": "10"}, ({"k": {"$lt": "9"}}, YES)),
        *_on({"k": "\U0001f980"}, ({"k": {"$gt": "\uffff"}}, YES)),
        *_on({"k": "a-b"}, ({"k": {"$lt": "aa"}}, YES)),
    ),
    "a filter on a list asks whether an element fits": (
        *_on(
            {"k": ["a", 2, None]},
            ({"k": "a"}, YES),
            ({"k": 2.0}, YES),
            ({"k": None}, YES),
            ({"k": "b"}, NO),
            ({"k": ["b", "a"]}, YES),
            ({"k": {"$gt": 1}}, YES),
            ({"k": {"$gt": 2}}, NO),
            ({"k": {"$ne": "a"}}, NO),
            ({"k": {"$ne": "b"}}, YES),
            ({"k": {"$nin": ["b", 2]}}, NO),
        ),
        *_on({"k": [1, 9]}, ({"k": {"$gt": 4, "$lt": 6}}, YES)),
        *_on(
            {"k": []},
            ({"k": None}, NO),
            ({"k": {"$ne": None}}, YES),
            ({"k": {"$exists": True}}, YES),
        ),
        *_on({"k": [["a"]]}, ({"k": "a"}, NO)),
        *_on({"k": [{"n": 1}]}, ({"k.n": 1}, NO), ({"k.n": {"$exists": True}}, NO)),
        *_on({"k": ["a", "b"]}, ({"k.0": "a"}, NO), ({"k.0": {"$exists": True}}, NO)),
    ),
    "a dotted path in a filter reaches a nested key": (
        *_on(
            {"a": {"b": {"c": 1}, "d": None}},
            ({"a.b.c": 1}, YES),
            ({"a.b.c": 2}, NO),
            ({"a.b": {"$exists": True}}, YES),
            ({"a.x": {"$exists": False}}, YES),
            ({"a.b.c.d": {"$exists": True}}, NO),
            ({"a.d": None}, YES),
            ({"a.d.e": None}, NO),
            ({"b.c": 1}, NO),
        ),
        *_on({"a": {"": 1}}, ({"a.": 1}, YES), ({"a": 1}, NO)),
        *_on({"": 1}, ({"": 1}, YES)),
        *_on({"a": {"0": 1}}, ({"a.0": 1}, YES)),
    ),
    "a dot or a dollar in a filter's key is escaped by a backslash": (
        *_on({"a.b": 1}, ({"a\\.b": 1}, YES), ({"a.b": 1}, NO)),
        *_on({"a": {"b": 1}}, ({"a\\.b": 1}, NO), ({"a.b": 1}, YES)),
        *_on({"$gt": 1}, ({"\\$gt": 1}, YES), ({"\\$gt": {"$gt": 0}}, YES)),
        *_on({"a\\b": 1}, ({"a\\\\b": 1}, YES)),
        *_on({"a$b": 1}, ({"a$b": 1}, YES), ({"a\\$b": 1}, YES)),
        *_on({"a": {"$in": 1}}, ({"a.$in": 1}, YES)),
        *_on({"it's": {'"q"': 1}}, ({'it\'s."q"': 1}, YES)),
    ),
    "a negation in a filter holds exactly where its opposite does not": (
        *_on(
            {},
            ({"k": {"$ne": 1}}, YES),
            ({"k": {"$nin": [1]}}, YES),
            ({"k": {"$not": {"$gt": 1}}}, YES),
            ({"$not": {"k": 1}}, YES),
            ({"$not": {"k": {"$exists": False}}}, NO),
        ),
        *_on(
            {"k": 1},
            ({"k": {"$ne": 1}}, NO),
            ({"k": {"$ne": 2}}, YES),
            ({"k": {"$ne": "1"}}, YES),
            ({"k": {"$not": {"$gt": 1}}}, YES),
            ({"k": {"$not": {"$gte": 1}}}, NO),
            ({"k": {"$not": {"$gt": "a"}}}, YES),
            ({"k": {"$not": {"$not": {"$eq": 1}}}}, YES),
            ({"k": {"$not": {"$gte": 1, "$lt": 1}}}, YES),
            ({"$not": {"k": 1}}, NO),
            ({"$not": {"k": 1, "j": 1}}, YES),
            ({"$not": {"$or": [{"k": 2}, {"j": 1}]}}, YES),
            ({"$not": {}}, NO),
        ),
        *_on({"k": None}, ({"k": {"$ne": 1}}, YES), ({"k": {"$not": {"$lt": 1}}}, YES)),
    ),
    "equals in a filter asks for the whole value": (
        *_on(
            {"k": ["a", 1, {"x": [None], "y": True}], "o": {"b": 1, "a": "\x00"}, "e": []},
            ({"k": {"$equals": ["a", 1.0, {"y": True, "x": [None]}]}}, YES),
            ({"k": {"$equals": ["a", 1]}}, NO),
            ({"k": {"$equals": [1, "a", {"x": [None], "y": True}]}}, NO),
            ({"k": {"$equals": ["a", 1, {"x": [None], "y": 1}]}}, NO),
            ({"k": {"$equals": ["a", True, {"x": [None], "y": True}]}}, NO),
            ({"k": {"$equals": "a"}}, NO),
            ({"k": {"$equals": {}}}, NO),
            ({"o": {"$equals": {"a": "\x00", "b": 1}}}, YES),
            ({"o": {"$equals": {"b": 1}}}, NO),
            ({"o": {"$equals": {"b": 1, "a": "\x00", "c": None}}}, NO),
            ({"o.b": {"$equals": 1}}, YES),
            ({"e": {"$equals": []}}, YES),
            ({"e": {"$equals": {}}}, NO),
            ({"e": {"$equals": None}}, NO),
            ({"k": {"$not": {"$equals": []}}}, YES),
        ),
        *_on(
            {"k": None, "n": 1},
            ({"k": {"$equals": None}}, YES),
            ({"j": {"$equals": None}}, NO),
            ({"j": {"$not": {"$equals": 1}}}, YES),
            ({"n": {"$equals": 1.0}}, YES),
            ({"n": {"$equals": True}}, NO),
            ({"n": {"$equals": [1]}}, NO),
        ),
    ),
    "an empty list in a filter lets nothing through, and an empty and everything": _on(
        {"k": 1},
        ({"$and": []}, YES),
        ({"$or": []}, NO),
        ({"k": []}, NO),
        ({"k": {"$in": []}}, NO),
        ({"k": {"$nin": []}}, YES),
        ({"j": {"$nin": []}}, YES),
        ({"$not": {"$and": []}}, NO),
        ({"$and": [{}]}, YES),
        ({"$or": [{}]}, YES),
    ),
}

REFUSED: tuple[Refusal, ...] = (
    Refusal("k = 1", "filter"),
    Refusal([{"k": 1}], "filter"),
    Refusal({1: 2}, "filter"),
    Refusal({"k": {"$near": 1}}, "filter.k.$near"),
    Refusal({"k": {"gt": 1}}, "filter.k.gt"),
    Refusal({"k": {"$gt": 1, "x": 2}}, "filter.k.x"),
    Refusal({"k": {}}, "filter.k"),
    Refusal({"$nor": []}, "filter.$nor"),
    Refusal({"$gt": 1}, "filter.$gt"),
    Refusal({"$and": {"k": 1}}, "filter.$and"),
    Refusal({"$or": [{"k": 1}, 2]}, "filter.$or[1]"),
    Refusal({"$and": [{"k": 1}, {"price": {"$gt": None}}]}, "filter.$and[1].price.$gt"),
    Refusal({"$not": [{"k": 1}]}, "filter.$not"),
    Refusal({"k": {"$not": 1}}, "filter.k.$not"),
    Refusal({"k": {"$in": "abc"}}, "filter.k.$in"),
    Refusal({"k": {"$in": [1, {"a": 1}]}}, "filter.k.$in[1]"),
    Refusal({"k": {"$eq": {"a": 1}}}, "filter.k.$eq"),
    Refusal({"k": {"$eq": [1]}}, "filter.k.$eq"),
    Refusal({"k": [[1]]}, "filter.k[0]"),
    Refusal({"k": {"$equals": [float("nan")]}}, "filter.k.$equals[0]"),
    Refusal({"k": {"$equals": {"a": b"bytes"}}}, "filter.k.$equals.a"),
    Refusal({"k": {"$lt": True}}, "filter.k.$lt"),
    Refusal({"k": {"$lte": [1]}}, "filter.k.$lte"),
    Refusal({"k": {"$exists": 1}}, "filter.k.$exists"),
    Refusal({"k": float("nan")}, "filter.k"),
    Refusal({"k": 2**63}, "filter.k"),
    Refusal({"k": b"bytes"}, "filter.k"),
    Refusal({"k": "\ud800"}, "filter.k"),
    Refusal({"a\\b": 1}, "filter.a\\b"),
    Refusal({"a\\": 1}, "filter.a\\"),
)


def as_markdown() -> str:
    """The truth table as the reference prints it: a section for each rule."""
    lines: list[str] = []
    for rule, cases in TRUTH.items():
        lines += [f"### {rule[0].upper()}{rule[1:]}", "", "| metadata | filter | passes |"]
        lines += ["|---|---|---|"]
        lines += [
            f"| {_code(case.metadata)} | {_code(case.filter)} | {'yes' if case.matches else 'no'} |"
            for case in cases
        ]
        lines.append("")
    lines += ["### A filter that cannot be read is refused by its path", ""]
    lines += ["| filter | the error's `field` |", "|---|---|"]
    lines += [
        f"| `{_safe(repr(refusal.filter))}` | `{_safe(refusal.field)}` |" for refusal in REFUSED
    ]
    return "\n".join(lines)


def _code(value: Any) -> str:
    return f"`{_safe(json.dumps(value))}`"


def _safe(text: str) -> str:
    return text.replace("|", "\\|")
