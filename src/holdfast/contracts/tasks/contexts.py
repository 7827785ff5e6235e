"""Conversations that tasks share, and which of their messages are not copied yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.contracts.tasks.scope import MOST, LedgerCalls, context_key
from holdfast.kernel.storage.ledger_context import ContextLedger
from holdfast.kernel.storage.ledger_input import check_owner
from holdfast.kernel.storage.ledger_records import (
    ContextPage,
    ContextRecord,
    decode_cursor,
    encode_cursor,
)
from holdfast.kernel.storage.ledger_transcript import (
    CONTEXT_MESSAGES,
    TaskMessage,
    TranscriptLedger,
)
from holdfast.spi.tasks_contexts import ContextAfter, SaidMessage
from holdfast.spi.tasks_records import Extent, load_messages
from holdfast.values.checks import (
    check_count,
    check_id,
    check_list,
    check_optional_count,
)
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent, AgentId


class ContextCalls(LedgerCalls, ContextLedger, TranscriptLedger):
    """``ContextLedger`` and ``TranscriptLedger`` on any engine."""

    async def list_contexts(
        self, *, owner: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> ContextPage:
        """Contexts, the newest first (those of one moment by id, descending), without messages."""
        whose, most = check_owner(owner), check_count("limit", limit)
        after = None
        if cursor is not None:
            when, (context_id, of) = decode_cursor(cursor, names=2)
            after = ContextAfter(when, context_id, of)
        if most == 0:
            return ContextPage([])
        # One more than asked for tells whether there is a next page.
        found = await self._storage.list_contexts(whose, after, min(most + 1, MOST))
        page, last = found[:most], None
        if len(found) > most:
            last = encode_cursor(page[-1].created_at, page[-1].id, page[-1].owner)
        return ContextPage(page, next_cursor=last)

    async def get_context(
        self,
        context_id: str,
        *,
        owner: str = "",
        history_length: int | None = None,
        max_bytes: int | None = None,
    ) -> ContextRecord | None:
        """A context with its last ``history_length`` messages (all, unless told), or ``None``."""
        extent = Extent(
            check_optional_count("history_length", history_length),
            max_bytes=check_optional_count("max_bytes", max_bytes),
        )
        found = await self._storage.get_context(context_key(context_id, owner), extent)
        if found is None:
            return None
        messages = load_messages(found.messages)
        return replace(found.context, messages=messages, truncated=found.truncated)

    async def clear_context(self, context_id: str, *, owner: str = "") -> int:
        """Remove a context with its tasks, and return how many those were."""
        return await self._storage.clear_context(context_key(context_id, owner))

    async def resting_messages(
        self, *, agents: Collection[Agent], limit: int = 100
    ) -> list[TaskMessage]:
        """All messages of up to ``limit`` tasks that are not marked and that nobody works on."""
        names = {AgentId.parse(one) for one in agents}
        found = await self._storage.resting_messages(names, check_count("limit", limit))
        return [_load(said) for said in found]

    async def context_messages(
        self,
        context_id: str,
        *,
        agents: Collection[Agent],
        owner: str = "",
        last: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Those of a context's last messages whose tasks are not marked."""
        names, key = {AgentId.parse(one) for one in agents}, context_key(context_id, owner)
        found = await self._storage.context_messages(key, names, check_count("last", last))
        return [_load(said) for said in found]

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks, given by id and version; returns the ids of those that still exist."""
        return await self._storage.mark_copied(
            [_check_version(at, one) for at, one in enumerate(check_list("tasks", tasks))]
        )


def _load(said: SaidMessage) -> TaskMessage:
    return TaskMessage(*said[:-1], said.message.load())


def _check_version(at: int, given: object) -> tuple[str, int]:
    """The id and the version of a task."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInputError(f"tasks[{at}]", "must be the id and the version of a task")
    return check_id(f"tasks[{at}]", given[0]), check_count(f"tasks[{at}]", given[1])
