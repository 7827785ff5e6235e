"""Chaos finds what is broken on purpose; otherwise its verdict would mean nothing."""

from __future__ import annotations

import shutil

import pytest

from holdfast.chaos.plan import Plan
from holdfast.chaos.processes import Programs
from holdfast.chaos.run import ChaosRun

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

FROZEN_WORKERS = Plan(
    seconds=4,
    counts={"freeze worker": 4},
    parts=("tasks",),
    tasks=16,
    task_pace_seconds=0.9,
    limit_seconds=300,
)
KILLED_AGENTS = Plan(
    seconds=4,
    counts={"kill agent": 3},
    parts=("memory",),
    agent_processes=1,
    agent_pace_seconds=0.05,
    consolidators=1,
)
KILLED_CONSOLIDATORS = Plan(
    seconds=4,
    counts={"kill consolidator": 4, "cut postgres": 2},
    parts=("memory",),
    agent_processes=1,
    sessions=3,
    agent_pace_seconds=0.05,
)


@pytest.mark.parametrize(
    ("programs", "plan", "invariant", "count"),
    [
        pytest.param(
            *(Programs(worker="tests.chaos.unfenced_worker"), FROZEN_WORKERS),
            *("P3", "zombie_writes_accepted"),
            id="a ledger that does not check the fence",
        ),
        pytest.param(
            *(Programs(agent="tests.chaos.early_agent"), KILLED_AGENTS),
            *("P1", "lost"),
            id="a log that acknowledges before it writes",
        ),
        pytest.param(
            *(Programs(consolidator="tests.chaos.hasty_consolidator"), KILLED_CONSOLIDATORS),
            *("P1", "lost"),
            id="a consolidator that acknowledges before the commit",
        ),
    ],
)
async def test_what_is_broken_on_purpose_is_caught(
    programs: Programs, plan: Plan, invariant: str, count: str
) -> None:
    verdict = await ChaosRun(plan, programs=programs).run()
    if verdict.logs:
        shutil.rmtree(verdict.logs)
    named = [line.partition(" ")[0] for line in verdict.broken]
    assert invariant in named, verdict.broken
    assert verdict.totals()[count] > 0
