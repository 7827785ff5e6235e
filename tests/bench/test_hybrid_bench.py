"""``holdfast bench hybrid`` and ``growth`` in a tiny size, on real servers."""

from __future__ import annotations

import pytest

from holdfast.bench import growth, growth_recall, hybrid
from holdfast.bench.facts import facts
from holdfast.bench.report_charts import drawn
from holdfast.bench.report_sheets import sheets

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ["redis only", "postgres only", "hybrid", "article"]


async def test_all_contestants_answer_the_same_questions_and_what_one_cannot_do_is_named() -> None:
    size = hybrid.Size(agents=3, turns=20, dimension=16, rounds=1, mixes=1, period_seconds=0.01)
    report = await hybrid.run(lambda _: None, size=size)
    found = facts("holdfast bench hybrid") | report.to_json()
    assert list(found["answers"]) == NAMES
    assert found["answers"]["redis only"] == {}
    assert "does not support recall" in found["cannot"]["redis only"]["semantic"]
    assert list(found["cannot"]["article"]) == ["record"]
    for name in ("postgres only", "hybrid"):
        assert found["answers"][name]["questions"] == 6
        assert found["answers"][name]["fidelity_5"] == 1
        assert found["answers"][name]["rows_least"] == 5
        assert found["space"][name]["postgres_bytes"] > 0
    measured = {(row["load"], row["contestant"], row["operation"]) for row in found["latency"]}
    for load in ("closed", "paced"):
        assert {(load, name, "hot") for name in NAMES} <= measured
        assert (load, "redis only", "semantic") not in measured
    assert ("writes", "hybrid", "record") in measured
    assert found["space"]["redis only"]["redis_bytes"] > 0
    assert sheets("hybrid", found)
    assert drawn("hybrid", found).startswith(b"\x89PNG")


async def test_growth_measures_each_wiring_at_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth_recall, "SIZES", (10, 30, 40))
    monkeypatch.setattr(growth_recall, "SESSION", 5)
    monkeypatch.setattr(growth_recall, "BATCH", 5)
    report = await growth.run(lambda _: None, events=10, agents=0, vectors=1000, turns=30, crowd=10)
    found = facts("holdfast bench growth") | report.to_json()
    by_size = {
        (row["grows"], row["wiring"]): [point["size"] for point in row["points"]]
        for row in found["rows"]
    }
    assert by_size == {
        ("events of a session", "postgres only"): [10],
        ("events of a session", "hybrid"): [10],
        ("documents of a collection", "postgres only"): [1000],
        ("turns of one agent", "postgres only"): [10, 30],
    }
    assert found["fidelity_5"] == [{"size": 1000, "fidelity_5": 1.0}]
    assert [(one["size"], one["fidelity_5"]) for one in found["turns"]] == [(10, 1.0), (30, 1.0)]
    assert found["turns"][-1]["tables"]["event_vectors"]["rows"] == 30
    assert found["bars"]["share of the nearest 5 that meaning finds"]["met"]
    assert sheets("growth", found)
    assert drawn("growth", found).startswith(b"\x89PNG")
