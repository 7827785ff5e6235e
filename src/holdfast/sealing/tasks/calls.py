"""What all calls of an encrypted ledger share: the owner of a task, and decryption."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from holdfast.sealing.seal import Seal
from holdfast.sealing.tasks.opener import (
    TaskOpener,
    opener_of,
    pieces_of_body,
    pieces_of_snapshot,
)
from holdfast.sealing.tasks.sealer import TaskSealer, plain_note, task_sealer
from holdfast.spi.tasks.ledger import TaskStorage
from holdfast.spi.tasks.records import Extent, StoredEvent, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.errors import ConflictError

T = TypeVar("T")

_COMPARED = frozenset({"message", "submit_key", "feedback", "step"})
"""The kinds of ``ConflictError`` that a different digest causes."""


class SealedCalls:
    """Base class of the calls of an encrypted ledger."""

    def __init__(self, inner: TaskStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal

    async def _owner(self, task_id: str, owner: str | None = None) -> str:
        """Return the owner of a task; ``""`` if the task does not exist."""
        if owner is not None:
            return owner
        known = self._seal.owners.get(task_id)
        if known is None:
            found = await self._inner.get(TaskKey(task_id, None), Extent())
            if found is None:
                return ""
            known = found.task.owner
            self._seal.remember_owner(task_id, known)
        return known

    async def _sealer(
        self, task_id: str, owner: str | None = None, *, as_before: bool = False
    ) -> TaskSealer | None:
        """Return the object that encrypts the values of a task; ``None`` without keys."""
        if self._seal.keys is None:
            return None
        return await task_sealer(self._seal, await self._owner(task_id, owner), as_before=as_before)

    async def _compared(self, call: Callable[..., Awaitable[T]]) -> T:
        """Call with keyed digests; after a conflict, with the digests of unencrypted values."""
        try:
            return await call(as_before=False)
        except ConflictError as error:
            if self._seal.keys is None or error.kind not in _COMPARED:
                raise
            try:
                return await call(as_before=True)
            except ConflictError:
                raise error from None

    async def _note(self, task_id: str, owner: str | None, note: str) -> str:
        if not note:
            return note
        sealer = await self._sealer(task_id, owner)
        return plain_note(note) if sealer is None else sealer.note(note)

    async def _snapshot(self, found: TaskSnapshot) -> TaskSnapshot:
        [opened] = await self._snapshots([found])
        return opened

    async def _snapshots(self, found: Sequence[TaskSnapshot]) -> list[TaskSnapshot]:
        if self._seal.keys is not None:
            for one in found:
                self._seal.remember_owner(one.task.id, one.task.owner)
        opener = await opener_of(
            self._seal, (piece for one in found for piece in pieces_of_snapshot(one))
        )
        if opener is None:
            return list(found)
        return [TaskOpener(opener, one.task.owner).snapshot(one) for one in found]

    async def _events(
        self, task_id: str, owner: str | None, events: Sequence[StoredEvent]
    ) -> Sequence[StoredEvent]:
        pieces = (piece for one in events for piece in pieces_of_body(one.body))
        opener = await self._opener(task_id, owner, pieces)
        return events if opener is None else [opener.event(one) for one in events]

    async def _message(self, task_id: str, message: StoredMessage) -> StoredMessage:
        opener = await self._opener(task_id, None, pieces_of_body(message))
        return message if opener is None else opener.message(message)

    async def _opener(
        self, task_id: str, owner: str | None, pieces: Iterable[str]
    ) -> TaskOpener | None:
        """Return the object that decrypts the texts of a task; ``None`` if none is encrypted."""
        opener = await opener_of(self._seal, pieces)
        if opener is None:
            return None
        return TaskOpener(opener, await self._owner(task_id, owner))
