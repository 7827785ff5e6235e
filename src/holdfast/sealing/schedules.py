"""Encrypted schedules: messages and metadata, as in the tasks that the schedules submit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Seal
from holdfast.sealing.tasks.opener import TaskOpener, opener_of, pieces_of_snapshot
from holdfast.sealing.tasks.sealer import TaskSealer, task_sealer
from holdfast.spi.schedules import (
    DueSchedules,
    ScheduleDraft,
    ScheduleKey,
    ScheduleRun,
    ScheduleStorage,
    StoredSchedule,
)
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.values.errors import ConflictError
from holdfast.values.sealed import check_parts, check_unsealed, object_piece, part_piece
from holdfast.values.tasks.records import stored_digest


class SealedSchedules(ScheduleStorage):
    """Encrypts what a ``ScheduleStorage`` stores.

    ::

        schedules = SealedSchedules(PostgresSchedules(engine), sealing)
    """

    def __init__(self, inner: ScheduleStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal

    async def put(self, draft: ScheduleDraft, *, replace: bool, most: int) -> StoredSchedule:
        """Store a schedule."""
        check_parts("message", draft.message)
        check_unsealed("metadata", draft.metadata)
        sealer = await task_sealer(self._seal, draft.owner)
        sealed = draft if sealer is None else _sealed(sealer, draft)
        try:
            found = await self._inner.put(sealed, replace=replace, most=most)
        except ConflictError:
            known = await self._inner.get(ScheduleKey(draft.owner, draft.id))
            if sealer is None or known is None or known.draft.digest != draft.digest:
                raise
            # The same schedule was stored before the tenant was sealed.
            found = known
        [opened] = await self._open([found])
        return opened

    async def get(self, key: ScheduleKey) -> StoredSchedule | None:
        """Return a schedule."""
        found = await self._inner.get(key)
        return None if found is None else (await self._open([found]))[0]

    async def list_schedules(
        self, owner: str | None, after: ScheduleKey | None, limit: int
    ) -> Sequence[StoredSchedule]:
        """Return schedules."""
        return await self._open(await self._inner.list_schedules(owner, after, limit))

    async def set_paused(self, key: ScheduleKey, *, paused: bool) -> StoredSchedule:
        """Pause or resume a schedule."""
        [found] = await self._open([await self._inner.set_paused(key, paused=paused)])
        return found

    async def delete(self, key: ScheduleKey) -> bool:
        """Delete a schedule."""
        return await self._inner.delete(key)

    async def due(self, limit: int) -> DueSchedules:
        """Return schedules that are due."""
        found = await self._inner.due(limit)
        return found._replace(schedules=await self._open(found.schedules))

    async def defer(self, schedule: StoredSchedule, seconds: float) -> None:
        """Postpone a schedule."""
        await self._inner.defer(schedule, seconds)

    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        """Submit the tasks and advance the schedule."""
        sealer = await task_sealer(self._seal, run.key.owner)
        if sealer is not None:
            run = run._replace(drafts=[sealer.draft(one) for one in run.drafts])
        made = await self._inner.run(run)
        opener = await opener_of(
            self._seal, (piece for one in made for piece in pieces_of_snapshot(one))
        )
        if opener is None:
            return made
        return [TaskOpener(opener, one.task.owner).snapshot(one) for one in made]

    async def _open(self, found: Sequence[StoredSchedule]) -> list[StoredSchedule]:
        pieces = [
            piece
            for one in found
            for piece in (part_piece(one.draft.message), object_piece(one.draft.metadata))
        ]
        opener = await opener_of(self._seal, pieces)
        if opener is None:
            return list(found)
        return [
            one._replace(draft=_opened(TaskOpener(opener, one.draft.owner), one.draft))
            for one in found
        ]


def _sealed(sealer: TaskSealer, draft: ScheduleDraft) -> ScheduleDraft:
    metadata = draft.metadata
    return dataclasses.replace(
        draft,
        # An engine stores it as the first message of each task.
        message=sealer.payload(draft.message, stored_digest(draft.message)),
        metadata=metadata if metadata == "{}" else sealer.sealer.json(_place(draft), metadata),
        digest=sealer.digest("schedule", draft.id, draft.digest),
    )


def _opened(opener: TaskOpener, draft: ScheduleDraft) -> ScheduleDraft:
    return dataclasses.replace(
        draft,
        message=opener.payload(draft.message, ""),
        metadata=opener.json(_place(draft), draft.metadata),
    )


def _place(draft: ScheduleDraft) -> Place:
    return Place("schedule", draft.id, "metadata")
