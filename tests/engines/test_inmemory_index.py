"""The in-memory index of events: it is updated, and equals one that is built anew."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engines.cosine import cosines
from holdfast.engines.inmemory.event_index import EventIndex, Row
from holdfast.engines.inmemory.vector_rows import VectorRows

KEYS = [f"e{at}" for at in range(12)]
VECTORS = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
CHANGES = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | VECTORS), max_size=40)


@given(
    changes=CHANGES,
    query=VECTORS,
    most=st.integers(0, 14),
    only=st.none() | st.sets(st.sampled_from(KEYS)),
)
@settings(deadline=None, derandomize=True)
def test_the_nearest_vectors_are_those_of_a_matrix_that_is_built_anew(
    changes: Any, query: Any, most: int, only: Any
) -> None:
    rows = VectorRows()
    held: dict[str, list[float]] = {}
    for key, vector in changes:
        if vector is None:
            rows.remove(key)
            held.pop(key, None)
        else:
            rows.add(key, [float(one) for one in vector])
            held[key] = [float(one) for one in vector]
    asked = [float(one) for one in query]
    expected = cosines(asked, {key: held[key] for key in held if only is None or key in only})
    found = rows.nearest(asked, most, only)
    assert found.items() <= expected.items()
    best = sorted(expected.values(), reverse=True)[:most]
    assert sorted(found.values(), reverse=True)[: len(best)] == best
    assert rows.of(asked, KEYS) == cosines(asked, held)


def test_a_matrix_of_many_vectors_grows() -> None:
    rows = VectorRows()
    for at in range(1000):
        rows.add(f"e{at}", [1.0, at / 1000])
    for at in range(0, 1000, 2):
        rows.remove(f"e{at}")
    found = rows.nearest([1.0, 0.0], 3)
    assert sorted(found, key=lambda key: -found[key])[:3] == ["e1", "e3", "e5"]
    assert len(rows.of([1.0, 0.0], [f"e{at}" for at in range(1000)])) == 500
    assert np.isfinite(list(found.values())).all()


TURNS = st.tuples(
    st.sampled_from(["Ana", "Ben"]), st.sampled_from(["tide?", "moon", "", "low tide? yes"])
)


@given(
    turns=st.lists(st.tuples(st.sampled_from(["s1", "s2"]), TURNS), max_size=12),
    gone=st.lists(st.sets(st.integers(0, 11)), max_size=3),
)
@settings(deadline=None, derandomize=True)
def test_an_index_after_removals_is_one_of_what_is_left(turns: Any, gone: Any) -> None:
    index = EventIndex()
    left: dict[int, Row] = {}
    for at, (session, (name, text)) in enumerate(turns):
        row = _row(session, f"m{at}", name, text, at)
        left[at] = row
        index.add(row, None)
    index.catch_up()
    for some in gone:
        index.remove([left.pop(at) for at in sorted(some) if at in left])
    anew = EventIndex()
    for row in left.values():
        anew.add(_row(row.session, row.id, *_said(row), row.seq), None)
    anew.catch_up()
    for word in ("tide", "moon", "low", "yes", "ana", "ben"):
        assert index.words.scores([word]) == anew.words.scores([word])
    assert index.speakers == anew.speakers
    assert index.bare.keys() == anew.bare.keys()
    assert [row.borrows for row in index.bare.values()] == [
        anew.bare[key].borrows for key in index.bare
    ]


def _row(session: str, id: str, name: str, text: str, seq: int) -> Row:
    body = f'{{"role":"user","name":"{name}","content":"{text}"}}'
    when = datetime(2030, 1, 1, tzinfo=UTC)
    return Row("ana", session, "message", body, id, "", when, epoch=1, seq=seq + 1)


def _said(row: Row) -> tuple[str, str]:
    payload = row.event().payload
    return payload["name"], payload["content"]
