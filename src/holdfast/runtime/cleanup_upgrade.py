"""Cleanup marks of earlier versions, which kept them in ``short_term``, where clients could write.

A migration moves those that are in Postgres. These readers find what is left: in Redis, or written
by a worker of an earlier version that still runs. Anything may be in those sessions, so whatever is
no mark is skipped.
"""

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.contracts.tasks.cleanup import check_mark
from holdfast.runtime.stores import TaskStores
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.cleanup import CleanupKind, CleanupMark

MARKS = "holdfast.cleanup"
"""The session with the marks of a tenant's tasks, one key a task."""

FILES = "holdfast.files."
"""With a digest of owner and context: the session with the files of its tasks' artifacts."""


async def earlier_marks(stores: TaskStores) -> dict[str, list[CleanupMark]]:
    """The marks by task.

    ::

        for task_id, marks in (await earlier_marks(state)).items(): ...
    """
    found = await stores.short_term.get_state(MARKS)
    return {task_id: marks for task_id, mark in found.items() if (marks := _read(task_id, mark))}


async def forget_marks(stores: TaskStores, task_id: str) -> None:
    """Remove the marks of a task.

    ::

        await forget_marks(state, task_id)
    """
    await stores.short_term.update_state(MARKS, {}, delete_keys=[task_id])


async def earlier_files(stores: TaskStores, context_id: str, owner: str) -> list[CleanupMark]:
    """The files of the artifacts of a context's tasks.

    ::

        files = await earlier_files(state, "c1", "ana")
    """
    found = await stores.short_term.get_state(files_session(context_id, owner))
    return [mark for task_id, refs in found.items() for mark in _marks(task_id, "artifact", refs)]


async def forget_files(stores: TaskStores, context_id: str, owner: str) -> None:
    """Remove them.

    ::

        await forget_files(state, "c1", "ana")
    """
    await stores.short_term.clear(files_session(context_id, owner))


def files_session(context_id: str, owner: str) -> str:
    """Where the files of a context were noted.

    >>> files_session("c1", "ana") == files_session("c1", "ana") != files_session("ana", "c1")
    True
    """
    return FILES + hashlib.sha256(f"{owner}\0{context_id}".encode()).hexdigest()


def _read(task_id: str, mark: Any) -> list[CleanupMark]:
    if not isinstance(mark, dict):
        return []
    found = _marks(task_id, "blob", mark.get("blobs")) + _marks(task_id, "file", mark.get("files"))
    if mark.get("run") is True:
        found += _marks(task_id, "run", [mark.get("session")], mark.get("agent"))
    return found


def _marks(task_id: str, kind: CleanupKind, refs: Any, agent: Any = "") -> list[CleanupMark]:
    found = []
    for ref in refs if isinstance(refs, list) else ():
        try:
            found.append(check_mark(task_id, kind, ref, agent))
        except InvalidInputError:
            continue
    return found
