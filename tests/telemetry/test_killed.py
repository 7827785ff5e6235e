"""A task that was killed, taken over and finished is one trace, as a collector received it."""

from __future__ import annotations

import asyncio
import re

from scripts.killed_trace import BLOCK, PAGE, drawn, killed_trace
from tests.telemetry.spans import Seen

OF_TASKS = re.compile(
    r"submit|claim |recover_expired|invoke_agent|execute_tool|record_step|\(a span of a killed"
)
"""The spans that every run has; others depend on what was copied to memory before."""


def _skeleton(shown: str) -> list[str]:
    return [
        re.sub(r"\s+", " ", line) for line in shown.splitlines() if OF_TASKS.match(line.strip())
    ]


def test_the_trace_of_a_killed_task_has_every_process_and_is_that_of_the_page() -> None:
    spans = asyncio.run(killed_trace())
    by_id = {one.id: one for one in spans}

    def named(name: str) -> list[Seen]:
        found = [one for one in spans if one.name == name]
        return sorted(found, key=lambda one: one.start)

    assert {one.process for one in spans} == {"client", "worker-1", "worker-2"}
    [submit] = named("submit tasks")
    assert submit.parent == ""
    # The killed worker: it claimed and stored a step, and its run never ended.
    runs = named("invoke_agent writer")
    assert [run.process for run in runs] == ["worker-2", "worker-2"]
    [fetch] = named("execute_tool fetch")
    assert fetch.process == "worker-1"
    assert fetch.parent not in by_id
    # It was taken over: the second worker recovered it, and claimed it twice, before and after
    # the child. The step of the dead worker was not run again.
    claims = [one for one in named("claim tasks") if one.parent == submit.id]
    assert [one.process for one in claims] == ["worker-1", "worker-2", "worker-2"]
    assert [one.attributes["holdfast.task.fence"] for one in claims] == [1, 2, 3]
    [recovered] = named("recover_expired tasks")
    assert (recovered.process, recovered.parent) == ("worker-2", submit.id)
    assert claims[0].start < recovered.start < claims[1].start
    assert {run.parent for run in runs} == {submit.id}
    outcomes = [run.attributes["holdfast.task.outcome"] for run in runs]
    assert outcomes == ["submitted", "completed"]
    # The child is below the call that submitted it, in the first run of the second worker.
    [child] = named("invoke_agent reader")
    [child_submit] = named("submit_child tasks")
    assert (child.parent, child_submit.parent) == (child_submit.id, runs[0].id)
    [summarize] = named("execute_tool summarize")
    assert summarize.parent == child.id
    assert not any(one.error for one in spans)
    [page] = BLOCK.findall(PAGE.read_text())
    assert _skeleton(page) == _skeleton(drawn(spans))
