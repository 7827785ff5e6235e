"""How tasks come into the in-memory ledger."""

from __future__ import annotations

from holdfast.backends.inmemory.ledger_data import ContextRow, TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.errors import IllegalTransitionError
from holdfast.kernel.core.lifecycle import TERMINAL, Actor, TaskState
from holdfast.kernel.storage.ledger_draft import Draft
from holdfast.spi.tasks_clients import FirstMessage
from holdfast.spi.tasks_conflicts import other_content
from holdfast.spi.tasks_records import TaskKey, TaskSnapshot


class SubmitView(LedgerView):
    """Submitting a task, anew or once more."""

    async def first_message(self, key: TaskKey) -> FirstMessage | None:
        """A task with its first message."""
        row = self._find(*key)
        if row is None:
            return None
        return FirstMessage(row, next(iter(row.messages.values())), self._engine.now())

    async def submit(self, draft: Draft) -> TaskSnapshot:
        """Store a task as submitted, or find the one of its key."""
        due = self._moment(draft.run_after)
        digest = draft.digest()
        known = self._submitted(draft, digest)
        if known is not None:
            return known.snapshot()
        context_id = draft.context_id
        if draft.retry_of:
            old = self._owned(draft.retry_of, draft.owner)
            if old.state not in TERMINAL:
                raise IllegalTransitionError(
                    "task", old.id, from_state=old.state, to_state=TaskState.SUBMITTED
                )
            context_id = context_id or old.context_id
        row = self._row(draft, context_id or draft.new_context_id)
        if draft.submit_key:
            self._data.keys[draft.owner, draft.submit_key] = (digest, row.id)
        self._move(row, TaskState.SUBMITTED, Actor.CLIENT, run_after=due)
        self._say(row, draft.message, Actor.CLIENT)
        return row.snapshot()

    def _submitted(self, draft: Draft, digest: str) -> TaskRow | None:
        """The task that was submitted before under this key, if its content is the same."""
        if not draft.submit_key:
            return None
        known, task_id = self._data.keys.get((draft.owner, draft.submit_key), ("", ""))
        if known and known != digest:
            raise other_content(draft.submit_key)
        return self._data.tasks[task_id] if known else None

    def _row(self, draft: Draft, context_id: str) -> TaskRow:
        now, data = self._engine.now(), self._data
        row = TaskRow(
            id=draft.id,
            context_id=context_id,
            owner=draft.owner,
            agent=draft.agent,
            metadata=draft.metadata,
            max_attempts=draft.max_attempts,
            submit_key=draft.submit_key,
            retry_of=draft.retry_of,
            created_at=now,
            updated_at=now,
            push={config.id: config for config in draft.push},
        )
        data.tasks[row.id] = row
        context = data.contexts.setdefault(
            (row.owner, context_id), ContextRow(context_id, row.owner, now)
        )
        context.tasks.append(row.id)
        return row
