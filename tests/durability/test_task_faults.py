"""Tasks survive the death of whatever works on them; the long form is in `make test-long`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.chaos.tasks import TaskFaults, TaskRun

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

SHORT = TaskFaults()
LONG = TaskFaults(
    tasks=200, kills=60, stops=40, server_kills=5, pace_seconds=1.5, limit_seconds=1500
)
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "tasks.json"


async def test_tasks_survive_kill_9_and_frozen_workers_and_a_dead_postgres(
    request: pytest.FixtureRequest,
) -> None:
    long = request.config.getoption("--long")
    faults = LONG if long else SHORT
    told: list[str] = []
    verdict = await TaskRun(faults, told.append).run()
    assert verdict.completed == faults.tasks
    assert (verdict.kills, verdict.stops) == (faults.kills, faults.stops)
    assert verdict.server_kills == faults.server_kills
    assert verdict.zombie_writes_refused > 0, "no write was refused, so the run proved nothing"
    if long:
        facts = {"command": "make test-long", "faults": vars_of(faults), **verdict.to_json()}
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(facts, indent=2) + "\n")


def vars_of(faults: TaskFaults) -> dict[str, float]:
    return {name: getattr(faults, name) for name in faults.__slots__}
