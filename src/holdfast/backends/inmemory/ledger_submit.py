"""How tasks come into the in-memory ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.backends.inmemory.ledger_data import ContextRow, TaskRow
from holdfast.backends.inmemory.ledger_stored import StoredMessage, StoredPush
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import check_count, check_list, check_optional_id
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import (
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
)
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.core.lifecycle import TERMINAL, Actor, TaskState
from holdfast.kernel.storage.ledger_push import PushConfig
from holdfast.kernel.storage.ledger_records import MAX_ATTEMPTS, TaskRecord, submit_digest


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that was checked and is not yet stored."""

    agent: AgentId
    message: StoredMessage
    context_id: str
    owner: str
    metadata: str
    submit_key: str
    max_attempts: int
    run_after: datetime | timedelta | None
    retry_of: str
    push: tuple[StoredPush, ...] = ()

    def digest(self) -> str:
        """What its submit key stands for."""
        return submit_digest(
            agent=self.agent,
            message=self.message.load(None),
            context_id=self.context_id,
            metadata=decode_json(self.metadata),
            max_attempts=self.max_attempts,
            run_after=self.run_after,
            retry_of=self.retry_of,
        )


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
        if check_count("max_attempts", max_attempts) == 0:
            raise InvalidInputError("max_attempts", "must be 1 or more")
        draft = Draft(
            agent=AgentId.parse(agent),
            message=StoredMessage.of(message),
            context_id=check_optional_id("context_id", context_id),
            owner=check_optional_id("owner", owner),
            metadata=encode_object({} if metadata is None else metadata, field="metadata"),
            submit_key=check_optional_id("submit_key", submit_key),
            max_attempts=max_attempts,
            run_after=run_after,
            retry_of=check_optional_id("retry_of", retry_of),
            push=tuple(check_push(config) for config in check_list("push", push)),
        )
        return self._submit(draft)

    async def retry(
        self, task_id: str, *, owner: str | None = "", submit_key: str = ""
    ) -> TaskRecord:
        """Submit the work of a terminal task again, as a new task of the same owner and context."""
        key = check_optional_id("submit_key", submit_key)
        old = self._owned(task_id, owner)
        _, first = next(iter(old.messages.values()))
        return self._submit(
            Draft(
                agent=old.agent,
                message=StoredMessage(new_id(), self._engine.now(), first.payload),
                context_id=old.context_id,
                owner=old.owner,
                metadata=old.metadata,
                submit_key=key,
                max_attempts=old.max_attempts,
                run_after=None,
                retry_of=old.id,
            )
        )

    def _submit(self, draft: Draft) -> TaskRecord:
        due = self._moment(draft.run_after)
        digest = draft.digest() if draft.submit_key else ""
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


def check_push(config: object) -> StoredPush:
    """A push config, checked and turned to text."""
    if not isinstance(config, PushConfig):
        raise InvalidInputError("push", f"must be a PushConfig, not {type(config).__name__}")
    return StoredPush.of(config)
