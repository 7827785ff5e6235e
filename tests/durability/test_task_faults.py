"""Tasks survive the death of whatever works on them; the long form is in `make test-long`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.chaos.plan import Plan
from holdfast.chaos.run import ChaosRun

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

SHORT = Plan(
    seconds=13,
    counts={
        "kill worker": 12,
        "freeze worker": 8,
        "kill postgres": 1,
        "cut postgres": 1,
        "deafen postgres": 1,
    },
    parts=("tasks",),
    workers=4,
    task_pace_seconds=0.7,
    limit_seconds=1200,
)
LONG = Plan(
    seconds=120,
    counts={
        "kill worker": 60,
        "freeze worker": 40,
        "kill postgres": 5,
        "cut postgres": 5,
        "delay postgres": 3,
        "silence postgres": 3,
        "deafen postgres": 5,
        "fill postgres": 3,
    },
    parts=("tasks",),
    tasks=200,
    workers=4,
    limit_seconds=900,
)
LINKED = Plan(
    seconds=130,
    counts={
        "kill worker": 60,
        "freeze worker": 40,
        "kill postgres": 5,
    },
    parts=("tasks",),
    tasks=100,
    linked=100,
    workers=4,
    task_pace_seconds=0.5,
    limit_seconds=400,
)
COMMAND = "python -m pytest tests/durability/test_task_faults.py --long"
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "tasks.json"


async def test_tasks_survive_kill_9_and_frozen_workers_and_a_dead_postgres(
    request: pytest.FixtureRequest,
) -> None:
    long = request.config.getoption("--long")
    plan = LONG if long else SHORT
    verdict = await ChaosRun(plan).run()
    assert verdict.broken == []
    wanted = {kind: n for kind, n in plan.counts.items() if kind not in verdict.not_done}
    assert verdict.faults == wanted
    assert verdict.tasks is not None
    assert verdict.tasks.completed == verdict.tasks.acknowledged == plan.tasks
    assert verdict.unproved == [], "no write was refused, so the run proved nothing"
    if long:
        facts = {"command": COMMAND, "plan": plan.to_json(), **verdict.to_json()}
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(facts, indent=2) + "\n")


async def test_children_messages_and_schedules_survive_the_same_faults(
    request: pytest.FixtureRequest,
) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("a schedule needs minutes: run it with --long")
    verdict = await ChaosRun(LINKED).run()
    assert verdict.broken == []
    assert verdict.faults == LINKED.counts
    assert verdict.linked is not None
    linked = verdict.linked
    assert linked.completed == linked.acknowledged == LINKED.linked
    assert (linked.children, linked.sent) == (2 * LINKED.linked, 2 * LINKED.linked)
    assert linked.ticks >= 2
    facts = {"command": COMMAND, "plan": LINKED.to_json(), **verdict.to_json()}
    (RESULT.parent / "linked-tasks.json").write_text(json.dumps(facts, indent=2) + "\n")
