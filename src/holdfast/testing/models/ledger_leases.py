"""What workers take from the naive ledger, and give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from holdfast.testing.models.ledger_linked import NaiveLinked
from holdfast.testing.models.ledger_tasks import NaiveTask
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, IllegalTransitionError, LeaseLostError
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.records import ClaimedTask, Completion, Lease, TaskRecord


class NaiveLeases(NaiveLinked):
    """What workers take, keep and give back."""

    async def claim(
        self,
        worker: str,
        *,
        agents: Sequence[str] | None = None,
        limit: int = 1,
        lease_seconds: float = 30,
        serial_contexts: bool = True,
        limits: Sequence[Limit] = (),
        versions: Mapping[str, Sequence[str]] | None = None,
    ) -> list[ClaimedTask]:
        """Take the highest priority, and of that what has waited longest."""
        claimed: list[ClaimedTask] = []
        ours = [task for task in self.tasks if not task.adopted]
        waiting = [
            task
            for task in ours
            if task.state == "submitted" and not (task.due and task.due > self.shared.now)
        ]
        for task in sorted(waiting, key=lambda task: (-task.priority, task.due, task.id)):
            busy = any(
                other.state == "working"
                and (other.owner, other.context) == (task.owner, task.context)
                for other in ours
            )
            if len(claimed) == limit:
                break
            if (agents is not None and str(task.agent) not in agents) or (serial_contexts and busy):
                continue
            known = (versions or {}).get(str(task.agent), ())
            if task.began_with and task.began_with not in known:
                continue
            counted = [
                one for one in limits if one.agent in (None, task.agent) and _holds(one, task)
            ]
            if any(self._is_full(one, task) for one in counted):
                continue
            if any(one.rate for one in counted):
                self.starts.append((task, self.shared.now))
            task.fence += 1
            task.attempts += 1
            task.began_with = task.began_with or next(iter(known), "")
            self.move(task, "working")
            task.worker = worker
            task.lease_until = self.shared.now + timedelta(seconds=lease_seconds)
            claimed.append(ClaimedTask(self.show(task, history=None), self._lease(task)))
        return claimed

    def _is_full(self, limit: Limit, task: NaiveTask) -> bool:
        """Whether so many tasks that count are at work, or began in the period."""

        def counts(other: NaiveTask) -> bool:
            return limit.agent in (None, other.agent) and (
                not limit.per_key or other.limit_key == task.limit_key
            )

        ours = [other for other in self.tasks if not other.adopted]
        working = [other for other in ours if other.state == "working" and counts(other)]
        if limit.concurrency is not None and len(working) >= limit.concurrency:
            return True
        if limit.count is None or limit.period_seconds is None:
            return False
        oldest = self.shared.now - timedelta(seconds=limit.period_seconds)
        begun = [at for other, at in self.starts if counts(other) and at > oldest]
        return len(begun) >= limit.count

    def _lease(self, task: NaiveTask) -> Lease:
        until = task.lease_until or self.shared.now
        return Lease(task.id, task.fence, task.worker, until, task.cancel, task.pause)

    async def heartbeat(self, lease: Lease, *, lease_seconds: float = 30) -> Lease:
        """Keep it."""
        task = self.held(lease)
        task.lease_until = self.shared.now + timedelta(seconds=lease_seconds)
        return self._lease(task)

    async def transition(
        self,
        lease: Lease,
        to: str,
        *,
        message: ChatMessage | None = None,
        note: str = "",
        run_after: timedelta | None = None,
        progress: bool = False,
        ask: Any = None,
        result: Any = None,
        children: Sequence[str] = (),
        topic: str | None = None,
        options: list[str] | None = None,
        schema: dict[str, Any] | None = None,
    ) -> TaskRecord:
        """End or suspend the work."""
        task = self.held(lease)
        if to == "working":
            raise IllegalTransitionError("task", task.id, from_state="working", to_state=to)
        if ask and any(step[0] == ask for step in task.steps):
            raise ConflictError("step", str(ask))
        if message:
            self.say(task, message)
        if progress:
            task.attempts = 0
        task.ask = ask
        later = self.shared.now + run_after if run_after else None
        later = self.wait_for(task, children, topic, later)
        self.stop(task, to, note, run_after=later, status=message)
        task.result = result if task.state == to else None
        task.form = (options or schema) if task.state == to else None
        return self.show(task)

    async def complete_many(self, leases: list[Lease | Completion]) -> list[str | None]:
        """Complete each that can be."""
        reached: list[str | None] = []
        for one in leases:
            end = one if isinstance(one, Completion) else Completion(one)
            try:
                done = await self.transition(
                    end.lease, "completed", message=end.message, result=end.result
                )
                reached.append(done.state)
            except (LeaseLostError, ConflictError):
                reached.append(None)
        return reached

    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        """Hand it back."""
        task = self.held(lease)
        task.attempts = 0
        self.stop(task, "submitted", note, keeps_place=True)
        return self.show(task)

    async def recover_expired(self, *, limit: int = 100) -> list[TaskRecord]:
        """Take back what nobody keeps."""
        expired = [
            task
            for task in self.tasks
            if task.state == "working" and task.lease_until and task.lease_until <= self.shared.now
        ]
        expired = sorted(expired, key=lambda task: (task.lease_until, task.id))[:limit]
        for task in expired:
            self.stop(task, "submitted", "expired", keeps_place=True)
        return [self.show(task) for task in expired]


def _holds(limit: Limit, task: NaiveTask) -> bool:
    return not limit.per_key or task.limit_key != ""
