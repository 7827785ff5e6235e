"""An encrypted ledger: timelines, contexts, push configs, and tasks of other systems."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from holdfast.sealing.tasks.calls import SealedCalls
from holdfast.sealing.tasks.clients import (
    SealedChildren,
    SealedForks,
    SealedInbox,
    SealedOperations,
)
from holdfast.sealing.tasks.opener import (
    TaskOpener,
    opener_of,
    pieces_of_entry,
    pieces_of_push,
)
from holdfast.sealing.tasks.records import open_record, pieces_of_record
from holdfast.sealing.tasks.sealer import (
    check_push,
    check_report,
    plain_note,
    task_sealer,
)
from holdfast.sealing.tasks.workers import SealedLeases, SealedProgress
from holdfast.spi.tasks.adopted import AdoptedStorage, Adoption, StoredReport
from holdfast.spi.tasks.changes import ChangePosition, ChangeStorage, FoundChanges
from holdfast.spi.tasks.cleanup import CleanupStorage
from holdfast.spi.tasks.contexts import (
    ContextAfter,
    ContextSnapshot,
    ContextStorage,
    SaidMessage,
)
from holdfast.spi.tasks.ledger import TaskStorage
from holdfast.spi.tasks.push import FailedDelivery, OutboxClaim, PushStorage
from holdfast.spi.tasks.records import (
    ContextKey,
    EntryKey,
    Extent,
    StoredEntry,
    StoredEvent,
    TaskKey,
    TaskSnapshot,
)
from holdfast.spi.tasks.stored import StoredFeedback, StoredPush
from holdfast.spi.tasks.timeline import AuditStorage, Followed, Timeline
from holdfast.values.identity import AgentId
from holdfast.values.sealed import check_unsealed, part_piece, text_piece
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import ContextRecord, Lease, TaskRecord


class SealedAudit(SealedCalls, AuditStorage):
    """Encrypts the feedback, and decrypts the events, of an ``AuditStorage``."""

    async def events(
        self, key: TaskKey, after: int, limit: int | None, max_bytes: int | None
    ) -> list[StoredEvent]:
        """Return events above a cursor."""
        found = await self._inner.events(key, after, limit, max_bytes)
        return list(await self._events(*key, found))

    async def next_events(self, key: TaskKey, after: int) -> Timeline | None:
        """Return some of the next events."""
        found = await self._inner.next_events(key, after)
        if found is None:
            return None
        return found._replace(events=await self._events(*key, found.events))

    def following(self, task_id: str) -> AbstractContextManager[Followed]:
        """Return a context in which events of the task wake a follower."""
        return self._inner.following(task_id)

    async def replay(self, key: TaskKey, until: int, extent: Extent) -> TaskRecord | None:
        """Return a task as it was after an event."""
        found = await self._inner.replay(key, until, extent)
        if found is None:
            return None
        opener = await opener_of(self._seal, pieces_of_record(found))
        return found if opener is None else open_record(TaskOpener(opener, found.owner), found)

    async def append_feedback(self, key: TaskKey, feedback: StoredFeedback) -> StoredFeedback:
        """Store feedback."""
        check_unsealed("text", feedback.text)

        async def append(*, as_before: bool) -> StoredFeedback:
            sealer = await self._sealer(*key, as_before=as_before)
            sealed = feedback if sealer is None else sealer.feedback(key.task_id, feedback)
            return await self._inner.append_feedback(key, sealed)

        [found] = await self._feedback(key, [await self._compared(append)])
        return found

    async def list_feedback(self, key: TaskKey) -> list[StoredFeedback]:
        """Return the feedback on a task."""
        return await self._feedback(key, await self._inner.list_feedback(key))

    async def _feedback(
        self, key: TaskKey, found: Sequence[StoredFeedback]
    ) -> list[StoredFeedback]:
        opener = await self._opener(*key, (text_piece(one.text) for one in found))
        if opener is None:
            return list(found)
        return [opener.feedback(key.task_id, one) for one in found]


class SealedContexts(SealedCalls, ContextStorage):
    """Decrypts the messages that a ``ContextStorage`` returns."""

    async def list_contexts(
        self, owner: str | None, after: ContextAfter | None, limit: int, *, children: bool
    ) -> list[ContextRecord]:
        """Return contexts."""
        return await self._inner.list_contexts(owner, after, limit, children=children)

    async def get_context(self, key: ContextKey, extent: Extent) -> ContextSnapshot | None:
        """Return a context with its last messages."""
        found = await self._inner.get_context(key, extent)
        if found is None:
            return None
        opener = await opener_of(self._seal, (part_piece(row[2]) for row in found.messages))
        if opener is None:
            return found
        own = TaskOpener(opener, key.owner)
        return found._replace(messages=[own.row(row) for row in found.messages])

    async def clear_context(self, key: ContextKey) -> int:
        """Delete a context."""
        return await self._inner.clear_context(key)

    async def resting_messages(self, agents: Collection[AgentId], limit: int) -> list[SaidMessage]:
        """Return messages that are not copied to session logs."""
        return await self._said(await self._inner.resting_messages(agents, limit))

    async def context_messages(
        self, keys: Sequence[ContextKey], agents: Collection[AgentId], last: int
    ) -> list[SaidMessage]:
        """Return messages of contexts that are not copied to session logs."""
        return await self._said(await self._inner.context_messages(keys, agents, last))

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks as copied."""
        return await self._inner.mark_copied(tasks)

    async def _said(self, found: Sequence[SaidMessage]) -> list[SaidMessage]:
        opener = await opener_of(self._seal, (part_piece(one.message.payload) for one in found))
        if opener is None:
            return list(found)
        return [
            one._replace(message=TaskOpener(opener, one.owner).message(one.message))
            for one in found
        ]


class SealedPush(SealedCalls, PushStorage):
    """Encrypts what a ``PushStorage`` stores."""

    async def upsert_push_config(
        self, key: TaskKey, config: StoredPush, max_configs: int | None
    ) -> bool:
        """Store a push config."""
        check_push(config)
        sealer = await self._sealer(*key)
        sealed = config if sealer is None else sealer.push(key.task_id, config)
        return await self._inner.upsert_push_config(key, sealed, max_configs)

    async def push_configs(self, key: TaskKey, config_id: str | None) -> list[StoredPush]:
        """Return push configs."""
        found = await self._inner.push_configs(key, config_id)
        opener = await self._opener(*key, (one for each in found for one in pieces_of_push(each)))
        return found if opener is None else [opener.push(key.task_id, one) for one in found]

    async def delete_push_config(self, key: TaskKey, config_id: str) -> bool:
        """Delete a push config."""
        return await self._inner.delete_push_config(key, config_id)

    async def claim_outbox(self, claim: OutboxClaim) -> list[StoredEntry]:
        """Claim entries to deliver."""
        return await self._entries(await self._inner.claim_outbox(claim))

    async def mark_delivered(self, key: EntryKey) -> bool:
        """Delete an entry."""
        return await self._inner.mark_delivered(key)

    async def mark_failed(self, key: EntryKey, failure: FailedDelivery) -> bool:
        """Postpone an entry, or give it up."""
        sealer = await self._sealer(key.task_id)
        error = plain_note(failure.error) if sealer is None else sealer.error(failure.error)
        return await self._inner.mark_failed(key, failure._replace(error=error))

    async def outbox(self, key: TaskKey) -> list[StoredEntry]:
        """Return the entries of a task."""
        return await self._entries(await self._inner.outbox(key))

    async def _entries(self, found: Sequence[StoredEntry]) -> list[StoredEntry]:
        opener = await opener_of(
            self._seal, (piece for one in found for piece in pieces_of_entry(one))
        )
        if opener is None:
            return list(found)
        return [TaskOpener(opener, one.owner).entry(one) for one in found]


class SealedAdopted(SealedCalls, AdoptedStorage):
    """Encrypts what an ``AdoptedStorage`` stores."""

    async def adopt(self, adoption: Adoption) -> TaskSnapshot:
        """Store a task that another system runs."""
        check_unsealed("metadata", adoption.metadata)
        reports = [check_report(one) for one in adoption.reports]
        sealer = await task_sealer(self._seal, adoption.owner)
        if sealer is None:
            adoption = adoption._replace(reports=reports)
        else:
            adoption = adoption._replace(
                metadata=sealer.metadata(adoption.metadata),
                reports=[sealer.report(one) for one in adoption.reports],
            )
        return await self._snapshot(await self._inner.adopt(adoption))

    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        """Store reports."""
        plain = [check_report(one) for one in reports]

        async def record(*, as_before: bool) -> int:
            sealer = await self._sealer(*key, as_before=as_before)
            sealed = plain if sealer is None else [sealer.report(one) for one in reports]
            return await self._inner.record(key, sealed, expected_version)

        return await self._compared(record)

    async def delete_task(self, key: TaskKey) -> bool:
        """Delete a task."""
        return await self._inner.delete_task(key)


class SealedCleanup(SealedCalls, CleanupStorage):
    """Passes calls on to a ``CleanupStorage``: marks have only ids, which are not encrypted."""

    async def add_cleanup(self, lease: Lease, mark: CleanupMark) -> None:
        """Store a cleanup mark."""
        await self._inner.add_cleanup(lease, mark)

    async def claim_cleanup(self, limit: int, retry_seconds: float) -> list[CleanupMark]:
        """Claim due cleanup marks."""
        return await self._inner.claim_cleanup(limit, retry_seconds)

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the due cleanup marks of a task."""
        return await self._inner.list_cleanup(task_id)

    async def list_context_cleanup(self, key: ContextKey) -> list[CleanupMark]:
        """Return the due cleanup marks of a context."""
        return await self._inner.list_context_cleanup(key)

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Store cleanup marks of artifacts."""
        return await self._inner.keep_files(task_id, refs)

    async def delete_cleanup(self, task_id: str, marks: Sequence[CleanupMark]) -> int:
        """Delete cleanup marks."""
        return await self._inner.delete_cleanup(task_id, marks)


class SealedChanges(SealedCalls, ChangeStorage):
    """Passes calls on to a ``ChangeStorage``: changes have no content to encrypt."""

    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        """Read changes after a position."""
        return await self._inner.changes(owner, after, limit)

    async def last_change(self) -> ChangePosition:
        """Return a position before all future changes."""
        return await self._inner.last_change()


class SealedLedger(
    SealedOperations,
    SealedLeases,
    SealedProgress,
    SealedAudit,
    SealedContexts,
    SealedPush,
    SealedCleanup,
    SealedAdopted,
    SealedForks,
    SealedChildren,
    SealedInbox,
    SealedChanges,
    TaskStorage,
):
    """Encrypts what a ``TaskStorage`` stores.

    ::

        ledger = SealedLedger(PostgresLedger(engine), sealing)
    """
