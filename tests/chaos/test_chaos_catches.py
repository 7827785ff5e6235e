"""Chaos finds what is broken on purpose; otherwise its verdict would mean nothing."""

from __future__ import annotations

import shutil

import pytest

from holdfast.chaos.plan import Plan
from holdfast.chaos.run import ChaosRun
from holdfast.chaos.staff import Programs
from holdfast.chaos.verdict import Verdict

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


async def _broken(plan: Plan, programs: Programs) -> tuple[list[str], Verdict]:
    """The names of the invariants that a run with these programs finds broken."""
    verdict = await ChaosRun(plan, programs=programs).run()
    if verdict.logs:
        shutil.rmtree(verdict.logs)
    return [line.partition(" ")[0] for line in verdict.broken], verdict


async def test_a_ledger_that_does_not_check_the_fence_is_caught() -> None:
    plan = Plan(
        seconds=4,
        counts={"freeze worker": 4},
        parts=("tasks",),
        tasks=16,
        task_pace_seconds=0.9,
        limit_seconds=60,
    )
    programs = Programs(worker="tests.chaos.unfenced_worker")
    named, verdict = await _broken(plan, programs)
    assert "P3" in named, verdict.broken
    assert verdict.tasks is not None
    assert verdict.tasks.zombie_writes_accepted > 0


async def test_a_log_that_acknowledges_before_it_writes_is_caught() -> None:
    plan = Plan(
        seconds=4,
        counts={"kill agent": 3},
        parts=("memory",),
        agent_processes=1,
        sessions=5,
        agent_pace_seconds=0.05,
        consolidators=1,
    )
    programs = Programs(agent="tests.chaos.early_agent")
    named, verdict = await _broken(plan, programs)
    assert "P1" in named, verdict.broken
    assert verdict.memory is not None
    assert verdict.memory.lost > 0


async def test_a_consolidator_that_acknowledges_before_the_commit_is_caught() -> None:
    plan = Plan(
        seconds=4,
        counts={"kill consolidator": 4, "cut postgres": 2},
        parts=("memory",),
        agent_processes=1,
        sessions=3,
        agent_pace_seconds=0.05,
    )
    programs = Programs(consolidator="tests.chaos.hasty_consolidator")
    named, verdict = await _broken(plan, programs)
    assert "P1" in named, verdict.broken
    assert verdict.memory is not None
    assert verdict.memory.lost > 0
