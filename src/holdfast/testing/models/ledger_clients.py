"""What clients do with the naive ledger."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from holdfast.testing.models.ledger_tasks import ASKING, DONE, NaiveTask, NaiveTasks
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, IllegalTransitionError, InvalidInputError
from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import TaskPage, TaskRecord


class NaiveClients(NaiveTasks):
    """What clients do."""

    async def submit(
        self,
        agent: AgentId | str,
        message: ChatMessage,
        *,
        session_id: str = "",
        owner: str = "",
        metadata: dict[str, Any] | None = None,
        submit_key: str = "",
        max_attempts: int = 5,
        run_after: timedelta | None = None,
        retry_of: str = "",
        push: Sequence[Any] = (),
        priority: int = 0,
        key: str = "",
    ) -> TaskRecord:
        """A new task, or the one with this key."""
        content: list[Any] = [str(agent), message.role, message.text, session_id, metadata or {}]
        content += [max_attempts, run_after, retry_of, priority, key]
        for task in self.tasks:
            if submit_key and (task.owner, task.key) == (owner, submit_key):
                if task.content != content:
                    raise ConflictError("submit_key", submit_key)
                return self.show(task)
        context = session_id
        if retry_of:
            old = self.steered(retry_of, owner)
            if old.state not in DONE:
                raise IllegalTransitionError(
                    "task", old.id, from_state=old.state, to_state="submitted"
                )
            context = session_id or old.context
        task = self.new_task(agent, owner, context, metadata or {}, max_attempts)
        task.key, task.content, task.retry_of = submit_key, content, retry_of
        task.push = {config.id: config for config in push}
        task.priority, task.limit_key = priority, key
        later = self.shared.now + run_after if run_after else None
        self.move(task, "submitted", run_after=later)
        self.say(task, message)
        return self.show(task)

    def new_task(
        self,
        agent: AgentId | str,
        owner: str,
        context: str,
        metadata: dict[str, Any],
        max_attempts: int,
    ) -> NaiveTask:
        """A task that nothing has happened to, in a context of its own unless it has one."""
        number = len(self.shared.table("task numbers")) + 1
        self.shared.table("task numbers").append(number)
        task = NaiveTask(
            f"{number:06d}",
            AgentId.parse(agent),
            owner,
            context or f"own {number}",
            copy.deepcopy(metadata),
            "",
            None,
            max_attempts,
            "",
            self.shared.now,
            self.shared.now,
        )
        self.tasks.append(task)
        return task

    async def retry(
        self, task_id: str, *, owner: str | None = None, submit_key: str = ""
    ) -> TaskRecord:
        """The same work again."""
        old = self.steered(task_id, owner)
        first = old.messages[0]
        again = ChatMessage(first.role, list(first.content))
        return await self.submit(
            str(old.agent),
            again,
            session_id=old.context,
            owner=old.owner,
            metadata=old.metadata,
            submit_key=submit_key,
            max_attempts=old.max_attempts,
            retry_of=old.id,
            priority=old.priority,
            key=old.limit_key,
        )

    async def get(
        self, task_id: str, *, owner: str | None = None, messages_limit: int | None = None
    ) -> TaskRecord | None:
        """The task."""
        task = self.look(task_id, owner)
        return self.show(task, history=messages_limit) if task else None

    async def list(
        self,
        *,
        owner: str | None = None,
        session_id: str | None = None,
        states: Sequence[str] | None = None,
        agent: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        messages_limit: int | None = 0,
        count: bool = False,
    ) -> TaskPage:
        """The newest first; a cursor is how many came before."""
        found = [
            task
            for task in self.tasks
            if owner in (None, task.owner)
            and session_id in (None, task.context)
            and agent in (None, str(task.agent))
            and (states is None or task.state in states)
        ]
        found = sorted(found, key=lambda task: (task.changed, task.id))[::-1]
        start = int(cursor or 0)
        page = found[start : start + limit]
        more = limit > 0 and start + limit < len(found)
        return TaskPage(
            [self.show(task, history=messages_limit) for task in page],
            next_cursor=str(start + limit) if more else None,
            total=len(found) if count else None,
        )

    async def respond(
        self, task_id: str, message: ChatMessage, *, owner: str | None = None
    ) -> TaskRecord:
        """Answer a question."""
        task = self.steered(task_id, owner)
        if any(known.id == message.id for known in task.messages):
            self.say(task, message)
            return self.show(task)
        if task.state not in ASKING:
            raise IllegalTransitionError(
                "task", task.id, from_state=task.state, to_state="submitted"
            )
        fitted = _fitted(task.form, message.text)
        self.say(task, message)
        if task.ask:
            result = {"message_id": message.id, **fitted}
            task.steps.append([task.ask, result, "", task.fence, 0])
            self.happen(task, "step", str(task.ask))
        task.attempts, task.ask = 0, None
        self.move(task, "paused" if task.pause else "submitted")
        return self.show(task)

    async def cancel(
        self, task_id: str, *, owner: str | None = None, note: str = "", children: bool = False
    ) -> TaskRecord:
        """Stop it, or ask for that; and before it all that is below it."""
        task = self.need(task_id, owner)
        tree = [task]
        for one in tree:
            tree += [below for below in self.tasks if children and below.parent == one.id]
        for one in reversed(tree[1:]):
            await self.cancel(one.id)
        if task.state == "working" and not task.cancel:
            task.cancel = True
            self.happen(task, "request", "cancel", note)
        elif task.state != "working" and task.state not in DONE:
            self.move(task, "canceled", note)
        return self.show(task)

    async def pause(self, task_id: str, *, owner: str | None = None, note: str = "") -> TaskRecord:
        """Hold it, or ask for that."""
        task = self.steered(task_id, owner)
        if task.state in DONE:
            raise IllegalTransitionError("task", task.id, from_state=task.state, to_state="paused")
        if task.state == "submitted":
            self.move(task, "paused", note, run_after=task.run_after)
        elif task.state != "paused" and not task.pause:
            task.pause = True
            self.happen(task, "request", "pause", note)
        return self.show(task)

    async def resume(self, task_id: str, *, owner: str | None = None, note: str = "") -> TaskRecord:
        """Let it go on."""
        task = self.steered(task_id, owner)
        if task.state in DONE:
            raise IllegalTransitionError(
                "task", task.id, from_state=task.state, to_state="submitted"
            )
        if task.state == "paused":
            if task.waits or task.topic is not None:
                task.run_after, task.waits, task.topic = None, 0, None
            self.move(task, "submitted", note, run_after=task.run_after)
        elif task.pause:
            task.pause = False
            self.happen(task, "request", "resume", note)
        return self.show(task)


def _fitted(form: Any, text: str) -> dict[str, Any]:
    """What is stored of an answer that fits: options are texts, a schema wants a number here."""
    if form is None:
        return {}
    if isinstance(form, list):
        if text not in form:
            raise InvalidInputError("message", "is no option")
        return {}
    if not text.isdigit():
        raise InvalidInputError("message", "is no number")
    return {"value": int(text)}
