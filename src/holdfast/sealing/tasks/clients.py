"""The calls of clients and operators, with encrypted tasks."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.sealing.tasks.calls import SealedCalls
from holdfast.sealing.tasks.sealer import (
    FORM,
    TaskSealer,
    check_draft,
    check_message,
    plain_note,
    task_sealer,
)
from holdfast.spi.tasks.children import ChildStorage
from holdfast.spi.tasks.clients import (
    ClientStorage,
    FirstMessage,
    Request,
    TaskFilter,
    TaskListing,
    TaskQuery,
)
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.forks import ForkDraft, ForkStorage
from holdfast.spi.tasks.inbox import InboxMessage, InboxStorage
from holdfast.spi.tasks.operations import CountBy, ManyQuery, OperationStorage
from holdfast.spi.tasks.records import Extent, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage, StoredStep
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.errors import NotSupportedError
from holdfast.values.sealed import check_unsealed, object_piece
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord
from holdfast.values.tasks.records import Lease


class SealedClients(SealedCalls, ClientStorage):
    """Encrypts what a ``ClientStorage`` stores."""

    async def submit(self, draft: Draft) -> TaskSnapshot:
        """Store a task."""
        check_draft(draft)

        async def submit(*, as_before: bool) -> TaskSnapshot:
            sealer = await task_sealer(self._seal, draft.owner, as_before=as_before)
            return await self._inner.submit(draft if sealer is None else sealer.draft(draft))

        return await self._snapshot(await self._compared(submit))

    async def submit_many(self, drafts: Sequence[Draft]) -> list[TaskSnapshot]:
        """Store tasks of one owner, all or none."""
        for draft in drafts:
            check_draft(draft)

        async def submit(*, as_before: bool) -> list[TaskSnapshot]:
            return await self._inner.submit_many(await self._sealed(drafts, as_before=as_before))

        return await self._snapshots(await self._compared(submit))

    async def first_message(self, key: TaskKey) -> FirstMessage | None:
        """Return a task with its first message."""
        found = await self._inner.first_message(key)
        if found is None:
            return None
        snapshot = await self._snapshot(TaskSnapshot(found.task, first=found.message))
        return found._replace(task=snapshot.task, message=snapshot.first)

    async def get(self, key: TaskKey, extent: Extent) -> TaskSnapshot | None:
        """Return a task."""
        found = await self._inner.get(key, extent)
        return None if found is None else await self._snapshot(found)

    async def message_bytes(self, key: TaskKey) -> int:
        """Return how many bytes the messages of a task take as they are stored."""
        return await self._inner.message_bytes(key)

    async def list_tasks(self, query: TaskQuery) -> TaskListing:
        """Return a page of tasks."""
        self._refuse_text(query.wanted)
        found = await self._inner.list_tasks(query)
        return found._replace(tasks=await self._snapshots(found.tasks))

    async def respond(
        self,
        key: TaskKey,
        answer: StoredMessage,
        result: str,
        form: str | None,
        by: str = "",
    ) -> TaskSnapshot | str:
        """Store the answer to a waiting task."""
        check_message(answer)
        check_unsealed("message", result)

        async def respond(*, as_before: bool) -> TaskSnapshot | str:
            sealer = await self._sealer(key.task_id, key.owner, as_before=as_before)
            if sealer is None:
                return await self._inner.respond(key, answer, result, form, by)
            sealed = (sealer.message(answer), sealer.answer(result))
            found = await self._inner.respond(key, *sealed, sealer.form(form), by)
            if isinstance(found, str) and found == form:
                # The question was asked before the tenant was sealed.
                return await self._inner.respond(key, *sealed, form, by)
            return found

        found = await self._compared(respond)
        if not isinstance(found, str):
            return await self._snapshot(found)
        opener = await self._opener(key.task_id, key.owner, [object_piece(found)])
        return found if opener is None else opener.json(FORM, found)

    async def request(self, key: TaskKey, what: Request, note: str, by: str = "") -> TaskSnapshot:
        """Apply a request."""
        sealed = await self._note(*key, note)
        return await self._snapshot(await self._inner.request(key, what, sealed, by))

    def _refuse_text(self, wanted: TaskFilter) -> None:
        if wanted.text is not None and self._seal.keys is not None:
            raise NotSupportedError(
                "sealed",
                "text in a filter of tasks",
                why="the text of a sealed message cannot be searched: filter by agent, state, "
                "context or time, and search in what was read",
            )

    async def _sealed(self, drafts: Sequence[Draft], *, as_before: bool = False) -> list[Draft]:
        sealers: dict[str, TaskSealer | None] = {}
        for draft in drafts:
            if draft.owner not in sealers:
                sealers[draft.owner] = await task_sealer(
                    self._seal, draft.owner, as_before=as_before
                )
        return [
            draft if (sealer := sealers[draft.owner]) is None else sealer.draft(draft)
            for draft in drafts
        ]


class SealedForks(SealedCalls, ForkStorage):
    """Encrypts what a ``ForkStorage`` stores."""

    async def fork(self, key: TaskKey, draft: ForkDraft) -> TaskSnapshot:
        """Store a fork, which continues from what another task stored."""
        check_message(draft.message)

        async def fork(*, as_before: bool) -> TaskSnapshot:
            sealer = await self._sealer(*key, as_before=as_before)
            if sealer is None:
                return await self._inner.fork(key, draft)
            said, digest = draft.message, draft.digest
            sealed = draft._replace(
                message=None if said is None else sealer.message(said, first=True),
                digest=digest and sealer.digest("fork", draft.submit_key, digest),
            )
            return await self._inner.fork(key, sealed)

        return await self._snapshot(await self._compared(fork))

    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> Sequence[str]:
        """Return those of the refs that another task uses."""
        return list(await self._inner.held_elsewhere(task_id, refs))


class SealedChildren(SealedCalls, ChildStorage):
    """Encrypts the tasks of a ``ChildStorage``. A step that only names a child stays plain."""

    async def submit_child(self, lease: Lease, step: StepDraft, draft: Draft) -> TaskSnapshot:
        """Store a task as a child, and the step that names it."""
        check_draft(draft)

        async def submit(*, as_before: bool) -> TaskSnapshot:
            sealer = await self._sealer(lease.task_id, as_before=as_before)
            if sealer is None:
                return await self._inner.submit_child(lease, step, draft)
            return await self._inner.submit_child(
                lease, sealer.step_digest(step), sealer.draft(draft)
            )

        return await self._snapshot(await self._compared(submit))

    async def children(self, key: TaskKey, after: str, limit: int) -> TaskListing:
        """Return the children of a task."""
        found = await self._inner.children(key, after, limit)
        return found._replace(tasks=await self._snapshots(found.tasks))

    async def cancel_tree(self, key: TaskKey, note: str, by: str = "") -> TaskSnapshot:
        """Cancel a task and all its descendants, which have the same owner."""
        sealed = await self._note(*key, note)
        return await self._snapshot(await self._inner.cancel_tree(key, sealed, by))


class SealedInbox(SealedCalls, InboxStorage):
    """Encrypts the messages that an ``InboxStorage`` stores."""

    async def send(self, key: TaskKey, message: InboxMessage, limit: int) -> None:
        """Store a message to a task."""
        check_unsealed("message", message.body)

        async def send(*, as_before: bool) -> None:
            sealer = await self._sealer(*key, as_before=as_before)
            await self._inner.send(key, message if sealer is None else sealer.inbox(message), limit)

        await self._compared(send)

    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        """Store the oldest message of a topic as a step."""
        found = await self._inner.receive(lease, step, topic, last=last)
        if found is None:
            return None
        opener = await self._opener(lease.task_id, None, [object_piece(found.result)])
        return found if opener is None else opener.step(found)


class SealedOperations(SealedClients, OperationStorage):
    """Encrypts the notes, and decrypts the tasks, of an ``OperationStorage``."""

    async def counts(self, by: CountBy, wanted: TaskFilter, limit: int) -> TaskCounts:
        """Count tasks."""
        self._refuse_text(wanted)
        return await self._inner.counts(by, wanted, limit)

    async def versions(self, owner: str | None, limit: int) -> dict[str, int]:
        """Return ids and versions."""
        return await self._inner.versions(owner, limit)

    async def workers(self, owner: str | None) -> list[WorkerRecord]:
        """Return the workers that hold tasks."""
        return await self._inner.workers(owner)

    async def many(self, query: ManyQuery) -> ManyTasks:
        """Apply an operation. The key of the filter's owner, or of none, encrypts its note."""
        self._refuse_text(query.wanted)
        note = query.note
        if note:
            sealer = await task_sealer(self._seal, query.wanted.owner or "")
            note = plain_note(note) if sealer is None else sealer.note(note)
        return await self._inner.many(query._replace(note=note))
