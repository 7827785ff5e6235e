"""Primaries die under load and replicas take over; the long form is in `make test-long`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.chaos.plan import Plan, Topology
from holdfast.chaos.run import ChaosRun

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

COMMAND = "python -m pytest tests/durability/test_failovers.py --long"
FAULTS = Path(__file__).parents[2] / "docs" / "faults"


def _plan(valkey: Topology, *, long: bool) -> Plan:
    times = 10 if long else 1
    return Plan(
        seconds=150 if long else 12,
        counts={
            "failover postgres": times,
            "failover valkey": times,
            "kill agent": times,
            "kill consolidator": times,
            "kill worker": times,
        },
        tasks=120 if long else 12,
        workers=2,
        sessions=5,
        consolidators=1,
        task_pace_seconds=0.5,
        level="committed",
        postgres="standby",
        valkey=valkey,
        limit_seconds=900,
    )


@pytest.mark.parametrize("valkey", ["sentinel", "cluster"])
async def test_failovers_under_load_lose_nothing_at_committed_and_double_nothing(
    request: pytest.FixtureRequest, valkey: Topology
) -> None:
    long = request.config.getoption("--long")
    plan = _plan(valkey, long=long)
    verdict = await ChaosRun(plan).run()
    assert verdict.broken == []
    assert verdict.faults == plan.counts
    assert verdict.tasks is not None
    assert verdict.memory is not None
    assert verdict.tasks.completed == verdict.tasks.acknowledged == plan.tasks
    assert (verdict.memory.lost, verdict.memory.duplicated) == (0, 0)
    assert verdict.memory.acknowledged > 0
    if long:
        facts = {"command": COMMAND, "plan": plan.to_json(), **verdict.to_json()}
        (FAULTS / f"failover-{valkey}.json").write_text(json.dumps(facts, indent=2) + "\n")
