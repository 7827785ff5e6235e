"""Cleanup marks of earlier versions, which kept them in ``short_term``, where clients could write.

A migration moves the marks that are in Postgres. These functions read the remaining ones: those in
Redis, and those written by a worker of an earlier version that still runs. Clients could write
anything into those sessions, so values that are not marks are skipped.
"""

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.contracts.tasks.cleanup import check_mark
from holdfast.runtime.stores import TaskStores
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.cleanup import CleanupKind, CleanupMark

MARKS = "holdfast.cleanup"
"""Id of the session with the marks of a tenant's tasks, one key per task."""

FILES = "holdfast.files."
"""Prefix of a context's session id; a digest of owner and context follows.

The session holds the refs of the files in the artifacts of the context's tasks.
"""


async def earlier_marks(stores: TaskStores) -> dict[str, list[CleanupMark]]:
    """Return the remaining marks of earlier versions, by task id.

    ::

        for task_id, marks in (await earlier_marks(state)).items(): ...
    """
    found = await stores.short_term.get_state(MARKS)
    return {task_id: marks for task_id, mark in found.items() if (marks := _read(task_id, mark))}


async def forget_marks(stores: TaskStores, task_id: str) -> None:
    """Delete the marks of a task that an earlier version stored.

    ::

        await forget_marks(state, task_id)
    """
    await stores.short_term.update_state(MARKS, {}, delete_keys=[task_id])


async def earlier_files(stores: TaskStores, session_id: str, owner: str) -> list[CleanupMark]:
    """Return a mark for each file that an earlier version listed for a context's artifacts.

    ::

        files = await earlier_files(state, "c1", "ana")
    """
    found = await stores.short_term.get_state(files_session(session_id, owner))
    return [mark for task_id, refs in found.items() for mark in _marks(task_id, "artifact", refs)]


async def forget_files(stores: TaskStores, session_id: str, owner: str) -> None:
    """Delete the list from which ``earlier_files`` makes its marks.

    ::

        await forget_files(state, "c1", "ana")
    """
    await stores.short_term.clear(files_session(session_id, owner))


def files_session(session_id: str, owner: str) -> str:
    """Return the id of the session that lists the files of a context.

    >>> files_session("c1", "ana") == files_session("c1", "ana") != files_session("ana", "c1")
    True
    """
    return FILES + hashlib.sha256(f"{owner}\0{session_id}".encode()).hexdigest()


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
