"""Chaos finds what is broken on purpose; otherwise its verdict would mean nothing."""

from __future__ import annotations

import pytest

from holdfast.chaos.tasks import TaskFaults, TaskRun

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


async def test_a_ledger_that_does_not_check_the_fence_is_caught() -> None:
    faults = TaskFaults(tasks=40, workers=3, kills=0, stops=10, server_kills=0, pace_seconds=0.8)
    with pytest.raises(AssertionError, match=r"P3|I6|I11"):
        await TaskRun(faults, lambda _: None, worker="tests.chaos.unfenced_worker").run()
