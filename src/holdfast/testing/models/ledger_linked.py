"""Children, messages and forks in the naive ledger."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.testing.models.ledger_clients import NaiveClients
from holdfast.testing.models.ledger_tasks import DONE, NaiveInbox, NaiveTask
from holdfast.values.content import ChatMessage
from holdfast.values.errors import (
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
)
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease, TaskPage, TaskRecord

NAMED = {"task_id": "a child"}
"""How the result of a step that submitted a child is compared: each ledger has its own ids."""


class NaiveLinked(NaiveClients):
    """Tasks that are linked to each other, and what is sent to them."""

    def keep(self, task: NaiveTask, key: StepKey, result: Any, digest: str) -> None:
        """Add a step."""
        chunks = [one for one in task.chunks if (one["step"], one["fence"]) == (key, task.fence)]
        task.steps.append([key, copy.deepcopy(result), digest, task.fence, len(chunks)])
        if key.kind != "try":
            task.attempts = 0
        self.happen(task, "step", str(key))

    def wait_for(
        self, task: NaiveTask, children: Sequence[str], topic: str | None, at: datetime | None
    ) -> datetime | None:
        """What a task waits for that is not there, and until when at the latest."""
        mine = [one for one in self.tasks if one.parent == task.id and one.id in children]
        live = [one for one in mine if one.state not in DONE]
        for child in live:
            child.awaited = True
        task.waits, task.topic = len(live), None
        if topic is not None and _waiting(task, topic):
            return None
        task.topic = topic
        return at

    async def submit_child(
        self,
        lease: Lease,
        key: StepKey,
        agent: str,
        message: ChatMessage,
        *,
        session_id: str | None = None,
    ) -> TaskRecord:
        """A new child, or the one under this key."""
        parent = self.held(lease)
        given = (agent, message.text, session_id)
        for step in parent.steps:
            if step[0] == key:
                child_id, before = parent.children[key]
                if given != before:
                    raise ConflictError("step", str(key))
                return self.show(self.need(child_id, None))
        if parent.cancel:
            raise ConflictError("task", parent.id)
        made = await self.submit(agent, message, session_id=session_id or "", owner=parent.owner)
        child = self.need(made.id, None)
        child.parent, parent.children[key] = parent.id, (child.id, given)
        self.keep(parent, key, NAMED, "")
        return self.show(child)

    async def children(self, task_id: str, *, owner: str | None = None) -> TaskPage:
        """All of them."""
        parent = self.look(task_id, owner)
        found = [one for one in self.tasks if parent is not None and one.parent == parent.id]
        return TaskPage([self.show(one) for one in sorted(found, key=lambda one: one.id)])

    async def send(
        self,
        task_id: str,
        message: Any,
        *,
        topic: str,
        message_id: str,
        owner: str | None = None,
    ) -> str:
        """Put it into the inbox, once."""
        task = self.steered(task_id, owner)
        for one in task.inbox:
            if one.id == message_id:
                if (one.topic, one.message) != (topic, message):
                    raise ConflictError("message", message_id)
                return message_id
        if task.state in DONE:
            raise ConflictError("task", task_id)
        task.inbox.append(NaiveInbox(message_id, topic, message))
        if task.topic == topic and task.state == "submitted":
            task.due = self.shared.now
        return message_id

    async def receive(
        self, lease: Lease, key: StepKey, *, topic: str, last: bool = False
    ) -> list[Any] | None:
        """The step with the oldest message, or with none."""
        task = self.held(lease)
        for step in task.steps:
            if step[0] == key:
                return list(step)
        waiting = _waiting(task, topic)
        if not waiting and not last:
            return None
        result: dict[str, Any] = {"id": None, "message": None}
        if waiting:
            result = {"id": waiting[0].id, "message": waiting[0].message}
            waiting[0].received = True
        self.keep(task, key, result, "")
        return list(task.steps[-1])

    async def resume_failed(self, task_id: str, *, owner: str | None = None) -> TaskRecord:
        """A task that goes on from all that a failed one stored."""
        old = self.steered(task_id, owner)
        if old.state != "failed":
            raise IllegalTransitionError("task", old.id, from_state=old.state, to_state="submitted")
        return self._fork(old, len(old.log), None, old.context)

    async def fork(
        self,
        task_id: str,
        at_seq: int,
        *,
        message: ChatMessage | None = None,
        owner: str | None = None,
    ) -> TaskRecord:
        """A task with what another had stored then."""
        if at_seq < 2:
            raise InvalidInputError("at_seq", "is before the first message")
        return self._fork(self.steered(task_id, owner), at_seq, message, "")

    def _fork(
        self, old: NaiveTask, at_seq: int, message: ChatMessage | None, context: str
    ) -> TaskRecord:
        task = self.new_task(old.agent, old.owner, context, old.metadata, old.max_attempts)
        task.retry_of = old.id
        task.priority, task.limit_key = old.priority, old.limit_key
        self.move(task, "submitted")
        counts = {"message": 0, "step": 0, "artifact": 0}
        before = old.log[:at_seq]
        for kind, *_ in before:
            if kind in counts:
                at, counts[kind] = counts[kind], counts[kind] + 1
                if kind == "message":
                    said = message if message is not None and at == 0 else old.messages[at]
                    task.messages.append(said)
                    if not context:
                        self.said.append((task, said))
                    self.happen(task, "message", said.text)
                elif kind == "step":
                    self._take_step(task, old, old.steps[at])
                else:
                    self._take_chunk(task, old, at, before)
        for mark in [one for one in self.marks if one.task == old.id and one.kind != "run"]:
            taken = copy.copy(mark)
            taken.task, taken.context, taken.due = task.id, task.context, None
            self.marks.append(taken)
        return self.show(task)

    def _take_step(self, task: NaiveTask, old: NaiveTask, step: list[Any]) -> None:
        key, result, digest, fence, chunks = step
        if key.kind == "child" and fence:
            child = self.look(old.children[key][0], None)
            if child is None or child.state != "completed":
                return
        if key in old.children:
            task.children[key] = old.children[key]
        task.steps.append([key, copy.deepcopy(result), digest, 0, chunks])
        self.happen(task, "step", str(key))

    def _take_chunk(
        self, task: NaiveTask, old: NaiveTask, at: int, before: Sequence[tuple[Any, ...]]
    ) -> None:
        """A chunk of an artifact as it is, or of a step that is stored."""
        chunks = old.chunks[: sum(kind == "artifact" for kind, *_ in before)]
        steps = old.steps[: sum(kind == "step" for kind, *_ in before)]
        chunk = chunks[at]
        replaced = any(one["id"] == chunk["id"] and not one["append"] for one in chunks[at + 1 :])
        of_step = any((one[0], one[3]) == (chunk["step"], chunk["fence"]) for one in steps)
        if not replaced or of_step:
            task.chunks.append({**chunk, "fence": 0})
            self.happen(task, "artifact", chunk["text"], chunk["append"])


def _waiting(task: NaiveTask, topic: str) -> list[NaiveInbox]:
    return [one for one in task.inbox if one.topic == topic and not one.received]
