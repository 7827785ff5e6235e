"""How tasks come into the in-memory ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.backends.inmemory.ledger_data import ContextRow, TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import check_optional_id
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import ConflictError, IllegalTransitionError, NotFoundError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.core.lifecycle import TERMINAL, Actor, TaskState
from holdfast.kernel.storage.ledger_draft import Draft
from holdfast.kernel.storage.ledger_push import PushConfig
from holdfast.kernel.storage.ledger_records import MAX_ATTEMPTS, TaskRecord


class SubmitView(LedgerView):
    """Submitting a task, anew or once more."""

    async def submit(
        self,
        agent: AgentId | str,
        message: ChatMessage,
        *,
        context_id: str = "",
        owner: str = "",
        metadata: dict[str, Any] | None = None,
        submit_key: str = "",
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
        retry_of: str = "",
        push: Sequence[PushConfig] = (),
    ) -> TaskRecord:
        """Queue a task for an agent, and return it with its id at once."""
        return self._submit(
            Draft.of(
                agent,
                message,
                context_id=context_id,
                owner=owner,
                metadata=metadata,
                submit_key=submit_key,
                max_attempts=max_attempts,
                run_after=run_after,
                retry_of=retry_of,
                push=push,
            )
        )

    async def retry(
        self, task_id: str, *, owner: str | None = "", submit_key: str = ""
    ) -> TaskRecord:
        """Submit the work of a terminal task again, as a new task of the same owner and context."""
        key = check_optional_id("submit_key", submit_key)
        old = self._owned(task_id, owner)
        _, first = next(iter(old.messages.values()))
        return self._submit(Draft.again(old.load(), first, submit_key=key, now=self._engine.now()))

    def _submit(self, draft: Draft) -> TaskRecord:
        due = self._moment(draft.run_after)
        digest = draft.digest()
        known = self._submitted(draft, digest)
        if known is not None:
            return known.load()
        context_id = draft.context_id
        if draft.retry_of:
            old = self._find(draft.retry_of, draft.owner)
            if old is None:
                raise NotFoundError("task", draft.retry_of)
            if old.state not in TERMINAL:
                raise IllegalTransitionError(
                    "task", old.id, from_state=old.state, to_state=TaskState.SUBMITTED
                )
            context_id = context_id or old.context_id
        row = self._row(draft, context_id or new_id())
        if draft.submit_key:
            self._data.keys[draft.owner, draft.submit_key] = (digest, row.id)
        self._move(row, TaskState.SUBMITTED, Actor.CLIENT, run_after=due)
        self._say(row, draft.message, Actor.CLIENT)
        return row.load()

    def _submitted(self, draft: Draft, digest: str) -> TaskRow | None:
        """The task that was submitted before under this key, if its content is the same."""
        if not draft.submit_key:
            return None
        known, task_id = self._data.keys.get((draft.owner, draft.submit_key), ("", ""))
        if known and known != digest:
            raise ConflictError(
                "submit_key",
                draft.submit_key,
                f"submit key {draft.submit_key!r} was used with other content: use a new key",
            )
        return self._data.tasks[task_id] if known else None

    def _row(self, draft: Draft, context_id: str) -> TaskRow:
        now, data = self._engine.now(), self._data
        row = TaskRow(
            id=new_id(),
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
