"""The calls of clients in memory: submit, read, answer, cancel and pause tasks."""

from __future__ import annotations

import string
from collections.abc import Sequence
from datetime import datetime

from holdfast.engines.inmemory.tasks.data import ContextRow, Doorbell, TaskRow
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.clients import (
    ClientStorage,
    FirstMessage,
    Request,
    TaskFilter,
    TaskListing,
    TaskQuery,
)
from holdfast.spi.tasks.conflicts import adopted, other_content
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import Extent, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage, fitting, text_bytes
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.content import TextBlock
from holdfast.values.errors import IllegalTransitionError
from holdfast.values.lifecycle import TERMINAL, WAITING, Actor, TaskState
from holdfast.values.tasks.events import TaskRequest

_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}


class InMemoryClients(LedgerView, ClientStorage):
    """The calls of clients: submit, read, answer, cancel and pause tasks."""

    async def first_message(self, key: TaskKey) -> FirstMessage | None:
        """Return a task with its first message, or ``None``."""
        row = self._find(*key)
        if row is None:
            return None
        return FirstMessage(row, first_of(row), self._engine.now())

    async def submit(self, draft: Draft) -> TaskSnapshot:
        """Store a task as submitted. If one with the same key exists, return that one."""
        due = self._moment(draft.run_after)
        digest = draft.digest()
        known = self._submitted(draft, digest)
        if known is not None:
            return known.snapshot()
        session_id = draft.session_id
        if draft.retry_of:
            old = self._steered(draft.retry_of, draft.owner)
            if old.state not in TERMINAL:
                raise _illegal(old, TaskState.SUBMITTED)
            session_id = session_id or old.session_id
        row = self._row(draft, session_id or draft.new_session_id)
        if draft.submit_key:
            self._data.keys[draft.owner, draft.submit_key] = (digest, row.id)
        with self._acting(draft.by):
            self._move(row, TaskState.SUBMITTED, Actor.CLIENT, run_after=due)
            self._say(row, draft.message, Actor.CLIENT)
        return row.snapshot()

    async def submit_many(self, drafts: Sequence[Draft]) -> list[TaskSnapshot]:
        """Store tasks as submitted, all or none."""
        digests: dict[str, str] = {}
        for draft in drafts:
            # All errors come first, so that nothing is half done.
            self._moment(draft.run_after)
            digest = draft.digest()
            self._submitted(draft, digest)
            if draft.submit_key and digests.setdefault(draft.submit_key, digest) != digest:
                raise other_content(draft.submit_key)
        return [await self.submit(draft) for draft in drafts]

    def _submitted(self, draft: Draft, digest: str) -> TaskRow | None:
        """Return the task that was submitted under this key; raise if its content differs."""
        if not draft.submit_key:
            return None
        known, task_id = self._data.keys.get((draft.owner, draft.submit_key), ("", ""))
        if known and known != digest:
            raise other_content(draft.submit_key)
        return self._data.tasks[task_id] if known else None

    def _row(self, draft: Draft, session_id: str) -> TaskRow:
        now, data = self._engine.now(), self._data
        row = TaskRow(
            id=draft.id,
            session_id=session_id,
            owner=draft.owner,
            agent=draft.agent,
            metadata=draft.metadata,
            max_attempts=draft.max_attempts,
            submit_key=draft.submit_key,
            retry_of=draft.retry_of,
            created_at=now,
            updated_at=now,
            push={config.id: config for config in draft.push},
            priority=draft.priority,
            key=draft.key,
        )
        data.tasks[row.id] = row
        data.prioritized |= row.priority > 0
        context = data.contexts.setdefault(
            (row.owner, session_id), ContextRow(session_id, row.owner, now)
        )
        context.tasks.append(row.id)
        return row

    async def get(self, key: TaskKey, extent: Extent) -> TaskSnapshot | None:
        """Return a task with the parts that ``extent`` selects, or ``None``."""
        row = self._find(*key)
        return None if row is None else row.snapshot(extent)

    async def message_bytes(self, key: TaskKey) -> int:
        """Return how many bytes the messages of a task take."""
        row = self._find(*key)
        return sum(text_bytes(one.payload) for one in row.messages.values()) if row else 0

    async def list_tasks(self, query: TaskQuery) -> TaskListing:
        """Return a page of tasks, ordered by their last change of state, the latest first."""
        found = [row for row in self._data.tasks.values() if fits(row, query.wanted)]
        found.sort(key=_newest, reverse=not query.oldest_first)
        total = len(found) if query.counted else None
        if query.after is not None and query.oldest_first:
            found = [row for row in found if _newest(row) > query.after]
        elif query.after is not None:
            found = [row for row in found if _newest(row) < query.after]
        page = found[: query.limit]
        firsts = {row.id: first_of(row) if query.first_messages else None for row in page}
        if query.extent.max_bytes is not None:
            sizes = (
                row.page_bytes(query.extent) + text_bytes(said.payload if said else "")
                for row in page
                for said in (firsts[row.id],)
            )
            page = page[: fitting(sizes, query.extent.max_bytes)]
        return TaskListing(
            [row.snapshot(query.extent)._replace(first=firsts[row.id]) for row in page],
            more=len(found) > len(page) > 0,
            total=total,
        )

    async def respond(
        self,
        key: TaskKey,
        answer: StoredMessage,
        result: str,
        form: str | None,
        by: str = "",
    ) -> TaskSnapshot | str:
        """Store the client's answer to a task that asked, and queue the task again."""
        row = self._steered(*key)
        if self._known(row, answer):
            return row.snapshot()
        if row.state not in WAITING:
            raise _illegal(row, TaskState.SUBMITTED)
        if row.form not in (None, form):
            return row.form
        with self._acting(by):
            self._say(row, answer, Actor.CLIENT)
            if row.ask is not None:
                self._keep(row, StepDraft(row.ask, result, "", answer.id), Actor.CLIENT)
            row.attempts, row.ask, row.form = 0, None, None
            paused = row.pause_requested
            self._move(row, TaskState.PAUSED if paused else TaskState.SUBMITTED, Actor.CLIENT)
        return row.snapshot()

    async def request(self, key: TaskKey, what: Request, note: str, by: str = "") -> TaskSnapshot:
        """Apply a request at once, or leave it to the task's worker."""
        row = self._owned(*key) if what == "cancel" else self._steered(*key)
        with self._acting(by):
            match what:
                case "cancel":
                    self._cancel(row, note)
                case "pause":
                    self._pause(row, note)
                case "resume":
                    self._resume(row, note)
        return row.snapshot()

    def _steered(self, task_id: str, owner: str | None) -> TaskRow:
        """Return the task. Raises if it is an adopted task, which another system runs."""
        row = self._owned(task_id, owner)
        if row.adopted:
            raise adopted(task_id)
        return row

    def _cancel(self, row: TaskRow, note: str) -> None:
        if row.state is TaskState.WORKING:
            if not row.cancel_requested:
                row.cancel_requested = True
                self._ask(row, TaskRequest("cancel", note))
        elif row.state not in TERMINAL:
            self._move(row, TaskState.CANCELED, Actor.CLIENT, note=note)

    def _pause(self, row: TaskRow, note: str) -> None:
        if row.state in TERMINAL:
            raise _illegal(row, TaskState.PAUSED)
        if row.state is TaskState.SUBMITTED:
            self._move(row, TaskState.PAUSED, Actor.CLIENT, note=note, run_after=row.run_after)
        elif row.state is not TaskState.PAUSED and not row.pause_requested:
            row.pause_requested = True
            self._ask(row, TaskRequest("pause", note))

    def _resume(self, row: TaskRow, note: str) -> None:
        if row.state in TERMINAL:
            raise _illegal(row, TaskState.SUBMITTED)
        if row.state is TaskState.PAUSED:
            if row.waits_for or row.waits_topic is not None:
                # It looks again: what it waits for may have come meanwhile.
                row.run_after, row.waits_for, row.waits_topic = None, 0, None
            self._move(row, TaskState.SUBMITTED, Actor.CLIENT, note=note, run_after=row.run_after)
        elif row.pause_requested:
            row.pause_requested = False
            self._ask(row, TaskRequest("resume", note))

    def _ask(self, row: TaskRow, request: TaskRequest) -> None:
        self._log(row, Actor.CLIENT, request, self._engine.now())
        if row.state is TaskState.WORKING:
            self._engine.table("", Doorbell).ring(row.worker)


def _newest(row: TaskRow) -> tuple[datetime, str]:
    return row.updated_at, row.id


def _illegal(row: TaskRow, to: TaskState) -> IllegalTransitionError:
    return IllegalTransitionError("task", row.id, from_state=row.state, to_state=to)


def first_of(row: TaskRow) -> StoredMessage | None:
    """Return the message that a task began with; ``None`` for an adopted task without one."""
    return next(iter(row.messages.values()), None)


def _says(row: TaskRow, text: str) -> bool:
    said, wanted = first_of(row), text.translate(_LOWER)
    return said is not None and any(
        wanted in block.text.translate(_LOWER)
        for block in said.load().content
        if isinstance(block, TextBlock)
    )


def fits(row: TaskRow, wanted: TaskFilter) -> bool:
    """Return whether a task passes the filter."""
    return (
        wanted.owner in (None, row.owner)
        and wanted.session_id in (None, row.session_id)
        and wanted.agent in (None, row.agent)
        and (wanted.updated_after is None or row.updated_at >= wanted.updated_after)
        and (wanted.states is None or row.state in wanted.states)
        and (wanted.updated_before is None or row.updated_at < wanted.updated_before)
        and (wanted.id_prefix is None or row.id.startswith(wanted.id_prefix))
        and wanted.worker in (None, row.worker)
        and (wanted.text is None or _says(row, wanted.text))
        and (wanted.children or not row.parent_id)
    )
