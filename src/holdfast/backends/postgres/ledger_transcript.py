"""Which messages of the ledger on Postgres are not copied into the session logs yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from holdfast.backends.postgres.ledger_view import LedgerView
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_id, check_optional_id
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.stored_messages import message_from_body
from holdfast.kernel.storage.ledger_transcript import (
    CONTEXT_MESSAGES,
    TaskMessage,
    TranscriptLedger,
)

_SQL = load("ledger_transcript")
_MOST_BYTES = 16 << 20
"""How many bytes of messages are read at a time: there may be many large ones."""


class PostgresTranscripts(LedgerView, TranscriptLedger):
    """``TranscriptLedger`` on Postgres."""

    async def resting_messages(
        self, *, agents: Collection[AgentId | str], limit: int = 100
    ) -> list[TaskMessage]:
        """All messages of tasks that are not marked and that nobody works on."""
        rows = await self._engine.fetch(
            _SQL["resting"],
            *(self._tenant, _names(agents), check_count("limit", limit), _MOST_BYTES),
            safe=True,
        )
        return [_said(row) for row in rows]

    async def context_messages(
        self,
        context_id: str,
        *,
        agents: Collection[AgentId | str],
        owner: str = "",
        last: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Those of a context's last messages whose tasks are not marked."""
        rows = await self._engine.fetch(
            _SQL["of_context"],
            *(self._tenant, check_optional_id("owner", owner), check_id("context_id", context_id)),
            *(_names(agents), check_count("last", last), _MOST_BYTES),
            safe=True,
        )
        return [_said(row) for row in rows]

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks; returns the ids of those that still exist."""
        rows = await self._engine.fetch(
            _SQL["mark"],
            self._tenant,
            [task_id for task_id, _ in tasks],
            [version for _, version in tasks],
            safe=True,
        )
        return {row[0] for row in rows}


def _names(agents: Collection[AgentId | str]) -> list[str]:
    return [str(AgentId.parse(one)) for one in agents]


def _said(row: Any) -> TaskMessage:
    task_id, agent, owner, context_id, version, message_id, at, seq, body = row
    message = message_from_body(body, id=message_id, created_at=at, seq=seq)
    return TaskMessage(task_id, AgentId.parse(agent), owner, context_id, version, message)
