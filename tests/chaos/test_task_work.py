"""What the journal of a run shows about workers that lost a lease."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import holdfast
from holdfast import ChatMessage
from holdfast.chaos.tasks import TaskWork, takeovers_of
from holdfast.chaos.verdict import Findings
from holdfast.values.lifecycle import Actor, TaskState
from holdfast.values.tasks.events import TaskEvent, Transition

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("7 ran t1 0", False),
        ("7 lost t1 stopped: the lease is lost", False),
        ("7 unanswered t1", False),
        ("7 refused t1", True),
        ("7 lost t1 a write was refused: the lease is lost", True),
    ],
)
async def test_only_a_refused_write_proves_that_a_zombie_was_refused(
    line: str, refused: bool, tmp_path: Path
) -> None:
    async with holdfast.open("memory:") as state:
        work = TaskWork(state, 1, tmp_path, Findings())
        assert not work.zombie_refused
        (tmp_path / "journal").write_text(f"7 ran t0 0\n{line}\n")
        assert work.zombie_refused is refused
        assert work.ghosts(7) == (0 if "ran" in line else 1)
        assert work.ghosts(8) == 0


async def test_a_run_is_over_when_all_its_tasks_were_submitted_and_have_ended(
    tmp_path: Path,
) -> None:
    async with holdfast.open("memory:") as state:
        work = TaskWork(state, 1, tmp_path, Findings())
        assert not await work.all_done()
        await work.submit(over_seconds=0)
        assert not await work.all_done()
        [claimed] = await state.tasks.claim("w-9")
        assert await work.holders() == {"9"}
        await state.tasks.transition(
            claimed.lease, "completed", message=ChatMessage.assistant("counted")
        )
        assert await work.holders() == set()
        assert await work.all_done()


async def test_the_reserve_is_submitted_one_at_a_time_after_the_others(tmp_path: Path) -> None:
    async with holdfast.open("memory:") as state:
        work = TaskWork(state, 3, tmp_path, Findings(), reserve=2)
        await work.submit(over_seconds=0)
        assert work.counts.acknowledged == 1
        assert [await work.submit_next() for _ in range(3)] == [True, True, False]
        asked = [task.submit_key for task in (await state.tasks.list()).tasks]
        assert sorted(asked) == ["k0", "k1", "k2"]


_START = datetime(2026, 1, 1, tzinfo=UTC)


def _moved(second: int, to: TaskState, by: Actor, worker: str) -> TaskEvent:
    at = _START + timedelta(seconds=second)
    return TaskEvent("t1", 1, at, by, 1, Transition("t1", 1, None, to, at, by, worker))


@pytest.mark.parametrize(("died", "takeovers"), [(10, [4.0]), (30, [])])
async def test_a_worker_that_is_killed_after_its_task_was_taken_over_was_only_frozen(
    died: int, takeovers: list[float]
) -> None:
    events = [
        _moved(0, TaskState.WORKING, Actor.WORKER, "w-9"),
        _moved(12, TaskState.SUBMITTED, Actor.RECOVERY, "w-9"),
        _moved(14, TaskState.WORKING, Actor.WORKER, "w-8"),
    ]
    assert takeovers_of(events, {"9": _START + timedelta(seconds=died)}) == takeovers
