"""A worker process that is killed; run by ``python -m holdfast.chaos.task_worker``.

It reads its job from standard input. It writes a line to the ``journal`` of the run for each step
that it runs and each lease that it loses; the journal survives the process.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

from holdfast.chaos.job import Job, note
from holdfast.chaos.linked_tasks import add_linked, linked_tenant
from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.runtime.runner import Ending
from holdfast.runtime.worker import Worker
from holdfast.values.errors import EngineError, LeaseLostError
from holdfast.wiring.front_door import open as open_state

JOURNAL = "journal"
STEPS = 3
CHUNKS = 8
ZOMBIE = "written after the lease was lost, under claim"
LEASE_SECONDS = 1.5
RECOVERY_SECONDS = 0.3


def expected_artifact(number: int) -> str:
    """Return the expected artifact of a task; workers and interruptions do not change it.

    >>> expected_artifact(7).splitlines()[0]
    'head of 7'
    """
    lines = [f"line {at} of {number}\n" for at in range(CHUNKS)]
    return f"head of {number}\n" + "".join(lines)


async def haunt(journal: Path, task: TaskContext) -> None:
    """Try to write after the lease was lost. The text contains the number of the claim.

    If this worker only fenced itself because it could not reach the ledger, the write may succeed.
    If another worker has claimed the task, the ledger must refuse it.
    """
    try:
        await task.artifact("out.txt", f"{ZOMBIE} {task.fence}", append=True)
    except LeaseLostError:
        note(journal, "refused", task.id)
    except EngineError:
        # No response: the check later finds out whether the write was stored.
        note(journal, "unanswered", task.id)


def make_app(journal: Path, pace_seconds: float) -> App:
    """Return the app under test: three steps, a streamed artifact, a message."""
    app = App("chaos", description="Counts, while it is being killed.")
    own = random.Random(os.getpid())  # noqa: S311 - only how long things take

    async def work(task: TaskContext, number: int) -> None:

        async def run(at: int) -> int:
            note(journal, "ran", task.id, at)
            await asyncio.sleep(own.uniform(0.5, 1.5) * pace_seconds)
            return number * at

        async def head() -> None:
            await task.artifact("out.txt", f"head of {number}\n", append=True)

        for at in range(STEPS):
            await task.step(f"s{at}", run, at)
        await task.step("head", head)
        for at in range(CHUNKS):
            await task.artifact("out.txt", f"line {at} of {number}\n", append=True)
            await asyncio.sleep(pace_seconds / CHUNKS)
        await task.say(f"counted {number}")

    @app.handler(max_attempts=50, backoff_seconds=0.05, max_backoff_seconds=0.2)
    async def count(task: TaskContext) -> None:
        try:
            await work(task, int(task.message.text))
        except asyncio.CancelledError:
            if task.cancelled:
                await haunt(journal, task)
            raise

    add_linked(app, journal, pace_seconds)
    return app


async def main(job: Job) -> None:
    """Run the tasks of the run's tenant until this process is killed."""
    journal = Path(job.folder) / JOURNAL
    app = make_app(journal, job.pace_seconds)

    def watch(ending: Ending) -> None:
        if ending.state is None and "lease" in ending.why:
            note(journal, "lost", ending.task_id, ending.why)

    settings = job.settings(max_connections=6)
    async with open_state(job.url, settings=settings) as state:
        worker = Worker(
            app,
            state,
            name=f"chaos-{os.getpid()}",
            concurrency=4,
            tenants=[job.tenant, linked_tenant(job.tenant)],
            lease_seconds=LEASE_SECONDS,
            recovery_seconds=RECOVERY_SECONDS,
            poll_seconds=0.2,
            watch=watch,
        )
        job.begun()
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(Job.read()))
