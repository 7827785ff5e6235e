"""What the benchmarks compute from what they measured."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.bench import growth, growth_recall
from holdfast.bench.facts import facts
from holdfast.bench.hybrid_report import Answers, Report
from holdfast.bench.hybrid_workload import K, made, nearest, share
from holdfast.bench.latency import percentiles, slope


def test_the_slope_of_a_power_law_is_its_exponent() -> None:
    sizes = [10, 100, 1000, 10_000]
    assert slope(sizes, [7.0] * 4) == 0
    assert slope(sizes, [3 * size for size in sizes]) == pytest.approx(1)
    assert slope(sizes, [0.5 * size**2 for size in sizes]) == pytest.approx(2)
    assert slope(sizes, [size**0.5 for size in sizes]) == pytest.approx(0.5)


def test_a_row_of_growth_has_a_slope_once_it_has_two_sizes() -> None:
    report = growth.Report()
    report.add(("agents", "hybrid", "recall"), 10, [1e-6])
    for size in (10, 100):
        report.add(("agents", "hybrid", "record"), size, [size / 1e6] * 3)
    single, grown = report.to_json()["rows"]
    assert single["slope"] is None
    assert [point["size"] for point in grown["points"]] == [10, 100]
    assert grown["slope"] == pytest.approx(1)


def test_percentiles_are_in_microseconds_and_ordered() -> None:
    found = percentiles([at / 1e6 for at in range(1, 1001)])
    assert found == {"p50_us": 500.5, "p95_us": 950.0, "p99_us": 990.0}


def test_the_nearest_are_those_with_the_largest_cosine_whatever_their_length() -> None:
    table = np.asarray([[1, 0], [0, 5], [9, 9], [-1, 0]], dtype=np.float32)
    assert nearest(table, [1.0, 0.1], 2) == {0, 2}


def test_rows_that_are_missing_count_against_fidelity() -> None:
    wanted = frozenset({1, 2, 3, 4, 5})
    assert share([1, 2, 3, 4, 5], wanted) == 1
    assert share([5, 1], wanted) == pytest.approx(0.4)
    assert share([], wanted) == 0
    assert share([6, 7, 8, 9, 1], wanted) == pytest.approx(0.2)


def test_the_workload_is_the_same_each_time_and_its_questions_have_their_answers() -> None:
    one, again = made(3, 60, 32), made(3, 60, 32)
    assert one.texts == again.texts
    assert all(np.array_equal(a, b) for a, b in zip(one.vectors, again.vectors, strict=True))
    for table, asked in zip(one.vectors, one.questions, strict=True):
        assert sum(question.shared for question in asked) == len(asked) // 2
        for question in asked:
            assert len(question.relevant) == len(question.exact) == K
            assert question.exact == nearest(table, question.vector)
    sizes = [len(text) for texts in one.texts for text in texts]
    assert min(sizes) > 700
    assert max(sizes) < 2400


def test_an_index_that_forgets_is_told_apart_from_an_exact_one() -> None:
    workload = made(2, 50, 16)
    exact, forgetful = Answers(), Answers()
    for question in workload.questions[0]:
        found = sorted(question.exact)
        exact.judge(question, found)
        forgetful.judge(question, found[:2])
    assert (exact.to_json()["fidelity_5"], exact.to_json()["rows_least"]) == (1, K)
    assert exact.to_json()["recall_5"] == exact.to_json()["recall_5_of_exact"]
    assert (forgetful.to_json()["fidelity_5"], forgetful.to_json()["rows_least"]) == (0.4, 2)


def test_a_bar_is_met_or_missed_by_what_was_measured() -> None:
    report = Report(50, 500, 256, 10)
    report.add("paced", "postgres only", "hot", [0.001] * 3)
    report.add("paced", "hybrid", "hot", [0.0006] * 3)
    [bar] = report.bars().values()
    assert bar == {"bar": 0.5, "got": 0.6, "met": False}


def test_every_suite_tells_its_command_day_machine_and_versions() -> None:
    found = facts("holdfast bench stores")
    assert list(found) == ["command", "date", "python", "machine", "versions"]
    assert set(found["machine"]) == {"cpu", "cores", "memory_gb", "system", "load_average"}
    assert {"holdfast", "asyncpg", "redis", "postgres", "pgvector", "valkey"} <= set(
        found["versions"]
    )


def test_the_bars_of_growing_turns_compare_the_sizes_of_one_run() -> None:
    rows = growth.Report()
    key = (growth_recall.GROWS, growth_recall.WIRING)
    for size, seconds in ((500, 1e-3), (50_000, 5e-3), (200_000, 7e-3)):
        rows.add((*key, growth_recall.BY_BOTH), size, [seconds] * 3)
        rows.add((*key, growth_recall.BY_MEANING), size, [seconds] * 3)
    point = {"fidelity_5": 0.9, "indexed_per_second": 6000.0, "words_bytes_per_turn": 290.0}
    rows.turns.points = [point | {"size": 500}, point | {"size": 200_000, "fidelity_5": 1.0}]
    found = rows.to_json()["bars"]
    assert {name: (one["got"], one["met"]) for name, one in found.items()} == {
        "p50 by both at 50,000 turns, times that at 500": (5.0, False),
        "p95 by meaning at the most turns, times that at 500": (7.0, True),
        "share of the nearest 5 that meaning finds": (0.9, False),
        "turns indexed a second": (6000.0, True),
        "bytes of the index of words for a turn": (290.0, True),
    }
    assert growth.Report().to_json()["bars"] == {}


def test_the_turns_of_growth_are_the_same_each_time_and_of_one_length() -> None:
    texts = list(growth_recall.turns(1500))
    assert texts == list(growth_recall.turns(1500))
    assert {len(text) for text in texts} == {growth_recall.CHARACTERS}
    assert len(set(texts)) == len(texts)
