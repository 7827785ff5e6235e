"""What must not outlive a task, tidied up when it has ended, also if everything dies in between.

Before a handler writes something of the kind, a mark is stored. When the task has ended, whoever
comes first does what the mark says and then removes it: the worker that ran it, or a later sweep.
"""

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.ledger_records import Artifact
from holdfast.runtime.large import let_go
from holdfast.runtime.workplace import Workplace

MARKS = "holdfast.cleanup"
"""The session of ``short_term`` with the marks of a tenant's live tasks, one key a task."""

FILES = "holdfast.files."
"""With a digest of the context: the session with the blobs of its tasks' artifacts."""


class Cleanup:
    """The mark of one task.

    ::

        cleanup = Cleanup(state, task.id, "researcher", task.context_id)
        await cleanup.of_run()
    """

    def __init__(self, place: Workplace, task_id: str, agent: str, session_id: str) -> None:
        self._place = place
        self._task_id = task_id
        self._mark: dict[str, Any] = {"agent": agent, "session": session_id}
        self._stored = False

    async def resume(self) -> None:
        """Take up the mark of an earlier attempt."""
        found = await self._place.short_term.get_state(MARKS, keys=[self._task_id])
        if found:
            self._mark, self._stored = found[self._task_id], True

    async def of_run(self) -> None:
        """The messages of this run are to be cleared."""
        if not self._mark.get("run"):
            await self._store(run=True)

    async def of_blob(self, ref: str) -> None:
        """A blob that only the handler needs is to be let go."""
        await self._store(blobs=[*self._mark.get("blobs", []), ref])

    async def of_file(self, ref: str) -> None:
        """A blob is to be let go unless it is part of an artifact."""
        await self._store(files=[*self._mark.get("files", []), ref])

    async def _store(self, **facts: Any) -> None:
        self._mark |= facts
        self._stored = True
        await self._place.short_term.update_state(MARKS, {self._task_id: self._mark})

    async def finish(self) -> None:
        """Do it now, if there is anything to do: the task has ended."""
        if self._stored:
            await _carry_out(self._place, self._task_id, self._mark)


async def sweep(place: Workplace) -> int:
    """Tidy up after tasks of a tenant whose worker died before it could; how many.

    ::

        await sweep(state)
    """
    count = 0
    for task_id, mark in (await place.short_term.get_state(MARKS)).items():
        task = await place.tasks.get(task_id, owner=None, history_length=0, artifacts=False)
        if task is None or task.terminal:
            await _carry_out(place, task_id, mark)
            count += 1
    return count


async def clear_context(place: Workplace, context_id: str, *, owner: str = "") -> int:
    """Remove a context: tasks, files, state, transcript and memory; how many tasks.

    Facts stay: they are the agent's. After a crash in the middle, the same call finishes it. ::

        await clear_context(state, "c1", owner="ana")
    """
    session = files_session(context_id, owner)
    files = await place.short_term.get_state(session)
    removed = await place.tasks.clear_context(context_id, owner=owner)
    for refs in files.values():
        for ref in refs:
            await let_go(place.blobs, ref)
    await place.short_term.clear(session)
    owned = place.for_owner(owner)
    await owned.episodes.clear(context_id)
    await owned.short_term.clear(context_id)
    return removed


async def _carry_out(place: Workplace, task_id: str, mark: dict[str, Any]) -> None:
    if mark.get("run"):
        await place.history.clear_run(
            AgentId.parse(mark["agent"]), session_id=mark["session"], run_id=task_id
        )
    for ref in mark.get("blobs", []):
        await let_go(place.blobs, ref)
    if files := mark.get("files"):
        await _sort_files(place, task_id, files)
    await place.short_term.update_state(MARKS, {}, delete_keys=[task_id])


async def _sort_files(place: Workplace, task_id: str, files: list[str]) -> None:
    """Keep what the artifacts are made of under their context; let the rest go."""
    task = await place.tasks.get(task_id, owner=None, history_length=0)
    used = set[str]() if task is None else {ref for one in task.artifacts for ref in _refs(one)}
    if task is not None and used:
        await place.short_term.update_state(
            files_session(task.context_id, task.owner), {task_id: sorted(used)}
        )
    for ref in files:
        if ref not in used:
            await let_go(place.blobs, ref)


def files_session(context_id: str, owner: str) -> str:
    """Where the blobs of a context's artifacts are noted: a digest, since two ids may be too long.

    >>> files_session("c1", "ana") == files_session("c1", "ana") != files_session("ana", "c1")
    True
    """
    return FILES + hashlib.sha256(f"{owner}\0{context_id}".encode()).hexdigest()


def _refs(artifact: Artifact) -> list[str]:
    return [ref for part in artifact.parts if (ref := getattr(part, "blob_ref", None))]
