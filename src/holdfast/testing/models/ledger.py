"""A naive ledger: lists and loops, and everything worked out anew for each answer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from holdfast.testing.models.ledger_adopted import NaiveAdopted
from holdfast.testing.models.ledger_cleanup import NaiveCleanup
from holdfast.testing.models.ledger_leases import NaiveLeases
from holdfast.testing.models.ledger_tasks import NaiveDelivery, NaiveTask
from holdfast.values.content import ChatMessage, ContentBlock, text_of
from holdfast.values.errors import ConflictError
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease


class NaiveLedger(NaiveLeases, NaiveCleanup, NaiveAdopted):
    """The rest: output, timeline, contexts and the outbox.

    Its answers are plain lists and tuples of what a machine compares.
    """

    async def append_message(
        self, lease: Lease, message: ChatMessage, *, step: StepKey | None = None
    ) -> str:
        """The text that is stored."""
        task = self.held(lease)
        for key, result, *_ in task.steps:
            if key == step:
                return next(one.text for one in task.messages if one.id == result["message_id"])
        self.say(task, message)
        if step:
            self.keep(task, step, {"message_id": message.id}, "")
        return next(one.text for one in task.messages if one.id == message.id)

    async def record_step(
        self,
        lease: Lease,
        key: StepKey,
        result: Any,
        *,
        digest: str = "",
        seconds: float | None = None,  # noqa: ARG002 - the machines compare no times
    ) -> list[Any]:
        """The step that is stored."""
        task = self.held(lease)
        for step in task.steps:
            if step[0] == key:
                if digest and step[2] and digest != step[2]:
                    raise ConflictError("step", str(key))
                return list(step)
        self.keep(task, key, result, digest)
        return list(task.steps[-1])

    async def steps(self, task_id: str) -> list[list[Any]]:
        """All steps."""
        return [list(step) for task in self.tasks if task.id == task_id for step in task.steps]

    async def append_artifact(
        self,
        lease: Lease,
        artifact_id: str,
        parts: list[ContentBlock],
        *,
        append: bool = False,
        last_chunk: bool = False,
        step: StepKey | None = None,
    ) -> tuple[str, bool]:
        """The chunk's text, and whether it was appended."""
        task = self.held(lease)
        before = [
            one for one in task.chunks if (one["id"], one["fence"]) == (artifact_id, task.fence)
        ]
        if append and before and before[-1]["last"]:
            raise ConflictError("artifact", artifact_id)
        return self._write(
            task, artifact_id, text_of(parts), append=append, last=last_chunk, step=step
        )

    def _write(
        self,
        task: NaiveTask,
        artifact_id: str,
        text: str,
        *,
        append: bool,
        last: bool,
        step: StepKey | None,
    ) -> tuple[str, bool]:
        written = [(one["id"], one["fence"]) for one in task.chunks]
        goes_on = append and (artifact_id, task.fence) in written
        chunk = {"id": artifact_id, "text": text, "append": goes_on, "last": last}
        task.chunks.append({**chunk, "step": step, "fence": task.fence})
        self.happen(task, "artifact", text, goes_on)
        return text, goes_on

    async def restore_artifacts(self, lease: Lease, key: StepKey) -> list[tuple[str, bool]]:
        """The chunks that were written again."""
        task = self.held(lease)
        if any((one["step"], one["fence"]) == (key, task.fence) for one in task.chunks):
            return []
        for step in task.steps:
            if step[0] == key:
                return [
                    self._write(
                        task,
                        one["id"],
                        one["text"],
                        append=one["append"],
                        last=one["last"],
                        step=key,
                    )
                    for one in list(task.chunks)
                    if (one["step"], one["fence"]) == (key, step[3])
                ]
        return []

    async def artifacts(
        self, task_id: str, *, owner: str | None = None
    ) -> list[tuple[str, str, bool]]:
        """Id, text and completeness of each."""
        task = self.look(task_id, owner)
        made: dict[str, tuple[str, bool]] = {}
        for one in task.chunks if task else []:
            before = made.get(one["id"], ("", False))[0] if one["append"] else ""
            made[one["id"]] = (before + one["text"], one["last"])
        return [(name, *rest) for name, rest in made.items()]

    async def events(self, task_id: str, *, owner: str | None = None) -> list[tuple[Any, ...]]:
        """The timeline."""
        task = self.look(task_id, owner)
        return list(task.log) if task else []

    async def append_feedback(
        self, task_id: str, text: str, *, feedback_id: str, owner: str | None = None
    ) -> tuple[str, str]:
        """The feedback that is stored."""
        task = self.need(task_id, owner)
        known = task.feedback.setdefault(feedback_id, text)
        if known != text:
            raise ConflictError("feedback", feedback_id)
        return feedback_id, text

    async def list_feedback(
        self, task_id: str, *, owner: str | None = None
    ) -> list[tuple[str, str]]:
        """All of it."""
        task = self.look(task_id, owner)
        return list(task.feedback.items()) if task else []

    async def list_contexts(self, *, owner: str | None = None) -> list[tuple[str, int]]:
        """Owner and number of tasks of each context, in no order."""
        names = {(task.owner, task.context) for task in self.tasks if owner in (None, task.owner)}
        counts = [
            (name[0], sum((task.owner, task.context) == name for task in self.tasks))
            for name in names
        ]
        return sorted(counts)

    async def get_context(self, session_id: str, *, owner: str = "") -> list[str] | None:
        """What was said in it."""
        if not any((one.owner, one.context) == (owner, session_id) for one in self.tasks):
            return None
        return [
            message.text
            for task, message in self.said
            if (task.owner, task.context) == (owner, session_id)
        ]

    async def clear_context(self, session_id: str, *, owner: str = "") -> int:
        """How many tasks went."""
        gone = [one for one in self.tasks if (one.owner, one.context) == (owner, session_id)]
        ids = [one.id for one in gone]
        self.tasks[:] = [one for one in self.tasks if one.id not in ids]
        for one in gone:
            self.wake_parent(one)
        self.said[:] = [one for one in self.said if one[0].id not in ids]
        self.outbox[:] = [one for one in self.outbox if one.task not in ids]
        for mark in self.marks:
            if mark.task in ids:
                mark.due = self.shared.now
        return len(gone)

    async def upsert_push_config(
        self, task_id: str, config: Any, *, owner: str | None = None
    ) -> None:
        """Keep it."""
        self.need(task_id, owner).push[config.id] = config

    async def list_push_configs(self, task_id: str, *, owner: str | None = None) -> list[Any]:
        """All of a task."""
        task = self.look(task_id, owner)
        return [task.push[name] for name in sorted(task.push)] if task else []

    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = None
    ) -> bool:
        """Whether it was there."""
        task = self.look(task_id, owner)
        if task is None or config_id not in task.push:
            return False
        del task.push[config_id]
        self.outbox[:] = [
            one for one in self.outbox if (one.task, one.config) != (task.id, config_id)
        ]
        return True

    async def claim_outbox(
        self, *, limit: int = 100, lease_seconds: float = 30
    ) -> list[NaiveDelivery]:
        """What is due and first of its config."""
        lanes: list[tuple[str, str]] = []
        due = []
        for one in self.outbox:
            lane = (one.task, one.config)
            if not one.dead and lane not in lanes:
                lanes.append(lane)
                if one.due <= self.shared.now:
                    due.append(one)
        due = sorted(due, key=lambda one: one.due)[:limit]
        for one in due:
            one.attempts += 1
            one.due = self.shared.now + timedelta(seconds=lease_seconds)
        return [copy.copy(one) for one in due]

    def _on_its_way(self, entry: NaiveDelivery) -> NaiveDelivery | None:
        for one in self.outbox:
            if (one.task, one.config, one.seq) == (entry.task, entry.config, entry.seq):
                return one
        return None

    async def mark_delivered(self, entry: NaiveDelivery) -> bool:
        """Whether it was there."""
        one = self._on_its_way(entry)
        if one is not None:
            self.outbox.remove(one)
        return one is not None

    async def mark_failed(self, entry: NaiveDelivery, error: str, *, max_attempts: int) -> bool:
        """Whether it was there and claimed by nobody since."""
        one = self._on_its_way(entry)
        if one is None or one.dead or one.attempts != entry.attempts:
            return False
        wait = min(2 ** (one.attempts - 1), 3600)
        one.error, one.due = error, self.shared.now + timedelta(seconds=wait)
        one.dead = one.attempts >= max_attempts
        return True

    async def list_outbox(self, task_id: str, *, owner: str | None = None) -> Sequence[Any]:
        """What is left for a task."""
        if self.look(task_id, owner) is None:
            return []
        left = [one for one in self.outbox if one.task == task_id]
        return [copy.copy(one) for one in sorted(left, key=lambda one: (one.seq, one.config))]
