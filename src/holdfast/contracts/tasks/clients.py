"""The implementation of ``ClientLedger``: submit, read, answer, cancel, pause and retry tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.contracts.tasks.checks import asks_nothing, check_note
from holdfast.contracts.tasks.client_ledger import ClientLedger
from holdfast.contracts.tasks.filters import TaskOrder, check_filter
from holdfast.contracts.tasks.questions import check_answer
from holdfast.contracts.tasks.queues import check_draft
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.clients import Request, TaskAfter, TaskQuery
from holdfast.spi.tasks.conflicts import adopted
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import Extent, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage, StoredPush
from holdfast.values.checks import (
    check_absent_id,
    check_count,
    check_list,
    check_optional_count,
    check_unreserved,
)
from holdfast.values.codec import encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.cursors import decode_cursor, encode_cursor
from holdfast.values.deprecation import renamed
from holdfast.values.errors import IllegalTransitionError, InvalidInputError, NotFoundError
from holdfast.values.identity import Agent
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import Owner
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import (
    MAX_ATTEMPTS,
    TaskPage,
    TaskRecord,
)


class ClientCalls(LedgerCalls, ClientLedger):
    """Implements ``ClientLedger``: checks the arguments, then calls the engine's storage."""

    @renamed(context_id="session_id")
    async def submit(
        self,
        agent: Agent,
        message: ChatMessage,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        metadata: dict[str, Any] | None = None,
        submit_key: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
        retry_of: str | None = None,
        push: Sequence[PushConfig] = (),
        priority: int = 0,
        key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Queue a task for an agent, and return it with its id at once."""
        configs = [StoredPush.of(config) for config in check_list("push", push)]
        draft = check_draft(
            agent,
            message,
            session_id=session_id,
            owner=owner,
            metadata=metadata,
            submit_key=submit_key,
            max_attempts=max_attempts,
            run_after=run_after,
            priority=priority,
            key=key,
        )
        repeated, who = check_absent_id("retry_of", retry_of), check_absent_id("by", by)
        if repeated or configs or who:
            push_by_id = {config.id: config for config in configs}
            draft = replace(draft, retry_of=repeated, push=tuple(push_by_id.values()), by=who)
        return (await self._storage.submit(draft)).load()

    async def retry(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        submit_key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Submit the work of a terminal task again, as a new task of the same owner and context."""
        name = check_unreserved("submit_key", check_absent_id("submit_key", submit_key))
        key, who = task_key(task_id, owner), check_absent_id("by", by)
        # Two round trips are safe: the fields read from the old task never change, and the new one
        # is submitted only if the old one still exists and has ended.
        old = await self._storage.first_message(key)
        if old is None:
            raise NotFoundError("task", task_id)
        if old.message is None or old.task.adopted:
            raise adopted(task_id)
        task = TaskSnapshot(old.task).load()
        draft = Draft.again(task, old.message, submit_key=name, now=old.now, by=who)
        return (await self._storage.submit(draft)).load()

    @renamed(history_length="messages_limit")
    async def get(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        messages_limit: int | None = None,
        artifacts: bool = True,
        max_bytes: int | None = None,
    ) -> TaskRecord | None:
        """Return a task, or ``None``, with its last ``messages_limit`` messages (default: all)."""
        extent = _check_extent(messages_limit, artifacts, max_bytes)
        found = await self._storage.get(task_key(task_id, owner), extent)
        return None if found is None else found.load()

    async def message_bytes(self, task_id: str, *, owner: Owner = None) -> int:
        """Return the size of a task's messages as JSON text, in bytes; 0 for an unknown task."""
        return await self._storage.message_bytes(task_key(task_id, owner))

    @renamed(history_length="messages_limit", context_id="session_id")
    async def list(
        self,
        *,
        owner: Owner = None,
        session_id: str | None = None,
        states: Collection[TaskState | str] | None = None,
        agent: Agent | None = None,
        updated_after: datetime | None = None,
        updated_before: datetime | None = None,
        id_prefix: str | None = None,
        worker: str | None = None,
        text: str | None = None,
        children: bool = True,
        order: TaskOrder = "newest",
        limit: int = 50,
        cursor: str | None = None,
        messages_limit: int | None = 0,
        first_message: bool = False,
        artifacts: bool = False,
        count: bool = False,
        max_bytes: int | None = None,
    ) -> TaskPage:
        """Return a page of tasks, the latest change of state first."""
        wanted = check_filter(
            owner,
            session_id=session_id,
            states=states,
            agent=agent,
            updated_after=updated_after,
            updated_before=updated_before,
            id_prefix=id_prefix,
            worker=worker,
            text=text,
        )._replace(children=bool(children))
        if order not in ("newest", "oldest"):
            raise InvalidInputError("order", f"must be 'newest' or 'oldest', not {order!r}")
        after = None
        if cursor is not None:
            when, [last_id] = decode_cursor(cursor, names=1)
            after = TaskAfter(when, last_id)
        extent = _check_extent(messages_limit, artifacts, max_bytes)
        query = TaskQuery(
            *(wanted, after, check_count("limit", limit), extent, bool(count)),
            oldest_first=order == "oldest",
            first_messages=bool(first_message),
        )
        found = await self._storage.list_tasks(query)
        tasks = [task.load() for task in found.tasks]
        last = encode_cursor(tasks[-1].updated_at, tasks[-1].id) if found.more else None
        return TaskPage(tasks, next_cursor=last, total=found.total)

    async def respond(
        self, task_id: str, message: ChatMessage, *, owner: Owner = None, by: str | None = None
    ) -> TaskRecord:
        """Answer the question of a waiting task, which returns to the queue."""
        answer, key = StoredMessage.of(message), task_key(task_id, owner)
        who = check_absent_id("by", by)
        step = {"message_id": answer.id, **({"by": who} if who else {})}
        try:
            found = await self._storage.respond(key, answer, encode_json(step), None, who)
            while isinstance(found, str):
                # The question may have changed since: then its form has, and it is checked again.
                result = encode_json({**step, **check_answer(found, message)})
                found = await self._storage.respond(key, answer, result, found, who)
        except IllegalTransitionError as error:
            raise asks_nothing(task_id, error.from_state) from None
        return found.load()

    async def cancel(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        note: str = "",
        children: bool = False,
        by: str | None = None,
    ) -> TaskRecord:
        """Cancel a task: at once if no worker holds it, else by a request to its worker."""
        if not children:
            return await self._request("cancel", task_id, owner, note, by)
        text, key = check_note("note", note), task_key(task_id, owner)
        return (await self._storage.cancel_tree(key, text, check_absent_id("by", by))).load()

    async def pause(
        self, task_id: str, *, owner: Owner = None, note: str = "", by: str | None = None
    ) -> TaskRecord:
        """Pause a task: at once if it is queued, else when it would return to the queue."""
        return await self._request("pause", task_id, owner, note, by)

    async def resume(
        self, task_id: str, *, owner: Owner = None, note: str = "", by: str | None = None
    ) -> TaskRecord:
        """Resume a paused task, or withdraw a pause that was only requested."""
        return await self._request("resume", task_id, owner, note, by)

    async def _request(
        self, what: Request, task_id: str, owner: Owner, note: str, by: str | None
    ) -> TaskRecord:
        text, key = check_note("note", note), task_key(task_id, owner)
        return (await self._storage.request(key, what, text, check_absent_id("by", by))).load()


def _check_extent(messages_limit: object, artifacts: object, max_bytes: object) -> Extent:
    """Check the arguments that limit what is read of a task."""
    return Extent(
        check_optional_count("messages_limit", messages_limit),
        bool(artifacts),
        check_optional_count("max_bytes", max_bytes),
    )
