"""How tasks come into the ledger on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.backends.postgres.ledger_rows import to_message, to_task
from holdfast.backends.postgres.ledger_view import LedgerView, message_columns, moment
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id, check_optional_id
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.ledger_draft import Draft
from holdfast.kernel.storage.ledger_input import check_owner
from holdfast.kernel.storage.ledger_push import PushConfig
from holdfast.kernel.storage.ledger_records import MAX_ATTEMPTS, TaskRecord
from holdfast.kernel.storage.ledger_stored import StoredMessage

_SQL = load("ledger_submit")


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
        return await self._submit(
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
        check_id("task_id", task_id)
        # Two statements: what is read of the old task never changes, and the new one is submitted
        # only if the old one is still there and has ended.
        old = await self._engine.fetchrow(
            _SQL["first"], self._tenant, task_id, check_owner(owner), safe=True
        )
        if old is None:
            raise NotFoundError("task", task_id)
        first = StoredMessage.of(to_message(old))
        return await self._submit(Draft.again(to_task(old), first, submit_key=key, now=old["now"]))

    async def _submit(self, draft: Draft) -> TaskRecord:
        configs = {config.id: config for config in draft.push}.values()
        row = await self._engine.fetchrow(
            _SQL["submit"],
            *(self._tenant, new_id(), draft.owner, draft.context_id, new_id()),
            *(str(draft.agent), draft.metadata, draft.max_attempts),
            *(draft.submit_key, draft.digest(), draft.retry_of),
            *moment(draft.run_after),
            *message_columns(draft.message),
            [config.id for config in configs],
            [encode_json(config.url) for config in configs],
            [encode_json(config.token) for config in configs],
            [config.authentication for config in configs],
            safe=True,
        )
        return self._queued(row)
