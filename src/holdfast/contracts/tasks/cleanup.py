"""Cleanup marks: stored notes of what must be deleted after a task has ended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, get_args, runtime_checkable

from holdfast.contracts.tasks.checks import check_lease
from holdfast.contracts.tasks.scope import LedgerCalls, context_key
from holdfast.values.checks import (
    check_count,
    check_id,
    check_ids,
    check_list,
    check_optional_id,
    check_seconds,
)
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.cleanup import CleanupKind, CleanupMark
from holdfast.values.tasks.records import Lease

RETRY_SECONDS = 60.0
"""The default time after which a claimed mark that was not deleted can be claimed again."""

_KINDS: tuple[CleanupKind, ...] = get_args(CleanupKind)


@runtime_checkable
class CleanupLedger(Protocol):
    """Cleanup marks: what any process has to delete after a task has ended.

    A mark names a blob to release or a transcript to clear. A worker stores the mark, then writes
    what it names: a crash in between leaves a mark without a blob, never a blob without a mark. A
    mark is due, which means that it can be claimed, when the task has ended; the mark of a file of
    its artifacts is due when the task is deleted with its context. Processing a mark must be
    idempotent: the mark is deleted afterwards, so after a crash in between it is processed again.

    Promises:

    - the marks of a live task are not due
    - the marks of a task are due however it ends
    - the same mark again is stored once
    - 20 concurrent marks of one task are all stored
    - a mark is stored only while the lease holds
    - the marks of an earlier attempt are kept
    - a claimed mark is due again after its retry_seconds
    - 10 concurrent claims of marks give each once
    - at most limit marks are claimed, the longest due first
    - a limit of zero claims no marks
    - the due marks of a task are listed whoever claimed them
    - a deleted mark is gone
    - files that are kept are due when their task is removed
    - the files of a task that is gone are not kept
    - after clear_context the marks of its tasks are due and found by the context
    - a new task of a cleared context does not make its marks due
    - one tenant never sees another's marks
    - an unknown kind of mark is refused
    - marks are still there after a reopen
    """

    @abstractmethod
    async def add_cleanup(
        self, lease: Lease, kind: CleanupKind, ref: str, *, agent: str = ""
    ) -> None:
        """Store a cleanup mark for the leased task. A retry has no further effect.

        ::

            await ledger.add_cleanup(lease, "blob", ref)
            await blobs.pin(ref)
        """
        ...

    @abstractmethod
    async def claim_cleanup(
        self, *, limit: int = 100, retry_seconds: float = RETRY_SECONDS
    ) -> list[CleanupMark]:
        """Claim up to ``limit`` due marks, the longest due first.

        A mark that is not deleted is due again after ``retry_seconds``. So a mark that cannot be
        processed does not block others, and two processes share the work.

        ::

            for mark in await ledger.claim_cleanup():
                await carry_out(mark)
        """
        ...

    @abstractmethod
    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the due marks of one task, claimed or not; ``[]`` until the task has ended.

        ::

            marks = await ledger.list_cleanup(task.id)
        """
        ...

    @abstractmethod
    async def list_context_cleanup(
        self, session_id: str, *, owner: str | None = None
    ) -> list[CleanupMark]:
        """Return the due marks of all tasks that a context has or had, claimed or not.

        ::

            await ledger.clear_context("c1", owner="ana")
            marks = await ledger.list_context_cleanup("c1", owner="ana")
        """
        ...

    @abstractmethod
    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Keep blobs until the task is deleted: they are files of its artifacts.

        Returns ``False``, with nothing stored, if the task does not exist any more.

        ::

            kept = await ledger.keep_files(task.id, [ref])
        """
        ...

    @abstractmethod
    async def delete_cleanup(self, marks: Sequence[CleanupMark]) -> int:
        """Delete processed marks, all of one task. Returns how many there were.

        ::

            await ledger.delete_cleanup(marks)
        """
        ...


class CleanupCalls(LedgerCalls, CleanupLedger):
    """Implements ``CleanupLedger``: checks the arguments, then calls the engine's storage."""

    async def add_cleanup(
        self, lease: Lease, kind: CleanupKind, ref: str, *, agent: str = ""
    ) -> None:
        """Store a cleanup mark for the leased task. A retry has no further effect."""
        mark = check_mark(check_lease(lease).task_id, kind, ref, agent)
        await self._storage.add_cleanup(lease, mark)

    async def claim_cleanup(
        self, *, limit: int = 100, retry_seconds: float = RETRY_SECONDS
    ) -> list[CleanupMark]:
        """Claim up to ``limit`` due marks, the longest due first."""
        most, later = check_count("limit", limit), check_seconds("retry_seconds", retry_seconds)
        return await self._storage.claim_cleanup(most, later)

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the due marks of one task, claimed or not; ``[]`` until the task has ended."""
        return await self._storage.list_cleanup(check_id("task_id", task_id))

    async def list_context_cleanup(
        self, session_id: str, *, owner: str | None = None
    ) -> list[CleanupMark]:
        """Return the due marks of all tasks that a context has or had, claimed or not."""
        return await self._storage.list_context_cleanup(context_key(session_id, owner))

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Keep blobs until the task is deleted: they are files of its artifacts."""
        task = check_id("task_id", task_id)
        return await self._storage.keep_files(task, check_ids("refs", refs))

    async def delete_cleanup(self, marks: Sequence[CleanupMark]) -> int:
        """Delete processed marks, all of one task. Returns how many there were."""
        given = check_marks(marks)
        return await self._storage.delete_cleanup(given[0].task_id, given) if given else 0


def check_mark(task_id: object, kind: object, ref: object, agent: object = "") -> CleanupMark:
    """Check the fields of a cleanup mark, and return the mark.

    >>> check_mark("t1", "run", "c1", "writer").agent
    'writer'
    """
    known: CleanupKind | None = next((one for one in _KINDS if one == kind), None)
    if known is None:
        raise InvalidInputError("kind", f"must be one of {', '.join(_KINDS)}")
    return CleanupMark(
        check_id("task_id", task_id),
        known,
        check_id("ref", ref),
        check_optional_id("agent", agent),
    )


def check_marks(marks: object) -> list[CleanupMark]:
    """Check cleanup marks, which must all be of one task.

    >>> check_marks([])
    []
    """
    found = []
    for at, mark in enumerate(check_list("marks", marks)):
        if not isinstance(mark, CleanupMark):
            raise InvalidInputError(
                f"marks[{at}]", f"must be a CleanupMark, not {type(mark).__name__}"
            )
        found.append(check_mark(mark.task_id, mark.kind, mark.ref, mark.agent))
    if len({mark.task_id for mark in found}) > 1:
        raise InvalidInputError("marks", "must be of one task")
    return found
