"""Deletes data that must not outlive its task, also after a crash.

Before a handler writes such data, it stores a cleanup mark in the ledger. When the task has ended,
the worker that ran it, or a later sweep, processes the marks and then deletes them.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from itertools import groupby

from holdfast.runtime.cleanup_upgrade import (
    earlier_files,
    earlier_marks,
    forget_files,
    forget_marks,
)
from holdfast.runtime.offload import release
from holdfast.runtime.running_task import RunningTask
from holdfast.runtime.stores import TaskStores
from holdfast.values.deprecation import renamed
from holdfast.values.errors import HoldfastError
from holdfast.values.identity import AgentId
from holdfast.values.owners import ANY_OWNER, owned_id
from holdfast.values.tasks.cleanup import CleanupKind, CleanupMark
from holdfast.values.tasks.records import Artifact, TaskRecord

_log = logging.getLogger("holdfast.worker")


class Cleanup:
    """The cleanup marks of one running task.

    ::

        cleanup = Cleanup(state, held, "researcher", task.session_id)
        await cleanup.of_run()
    """

    def __init__(self, stores: TaskStores, held: RunningTask, agent: str, session_id: str) -> None:
        self._stores = stores
        self._held = held
        self._agent = agent
        self._session_id = session_id
        self._of_run = False
        # Only a task that was claimed before can have marks from earlier runs.
        self._marked = held.lease.fence > 1

    async def of_run(self) -> None:
        """Add a mark: clear the transcript messages of this run when the task has ended."""
        if not self._of_run:
            await self._add("run", self._session_id, agent=self._agent)
            self._of_run = True

    async def of_blob(self, ref: str) -> None:
        """Add a mark: release this blob when the task has ended; only its handler needs it."""
        await self._add("blob", ref)

    async def of_file(self, ref: str) -> None:
        """Add a mark: release this blob when the task has ended, unless an artifact uses it."""
        await self._add("file", ref)

    async def of_result(self, ref: str) -> None:
        """Add a mark: release this blob when the task is deleted."""
        await self._add("artifact", ref)

    async def _add(self, kind: CleanupKind, ref: str, *, agent: str = "") -> None:
        # Set before the call: if the response is lost, the mark may be stored all the same.
        self._marked = True
        await self._stores.tasks.add_cleanup(self._held.lease, kind, ref, agent=agent)

    async def finish(self) -> None:
        """Process the marks now, if there are any. Called when the task has ended."""
        if not self._marked:
            return
        task_id = self._held.lease.task_id
        try:
            await carry_out(self._stores, await self._stores.tasks.list_cleanup(task_id))
        except HoldfastError as error:
            # The task has ended all the same; its marks stay due until a sweep processes them.
            _log.warning("task %s: a sweep will clean up after it: %s", task_id, error)


async def sweep(stores: TaskStores) -> int:
    """Process the cleanup marks of ended tasks of a tenant whose workers died before they could.

    Returns how many tasks were cleaned up. If processing a task's marks fails, the error is
    logged, the marks are due again later, and the other tasks are still cleaned up. ::

        await sweep(state)
    """
    found = _by_task(await stores.tasks.claim_cleanup())
    return sum([await _swept(stores, task_id, marks) for task_id, marks in found])


async def sweep_earlier(stores: TaskStores) -> bool:
    """Process marks of earlier Holdfast versions. Returns whether unended tasks have such marks.

    ::

        while await sweep_earlier(state): ...
    """
    left = False
    for task_id, marks in (await earlier_marks(stores)).items():
        task = await stores.tasks.get(task_id, owner=ANY_OWNER, messages_limit=0, artifacts=False)
        if task is not None and not task.terminal:
            left = True
        elif await _swept(stores, task_id, [_moved(one, task) for one in marks]):
            await forget_marks(stores, task_id)
    return left


def _moved(mark: CleanupMark, task: TaskRecord | None) -> CleanupMark:
    """Return the mark with the session and agent ids in today's form, which includes the owner."""
    if task is None or mark.kind != "run":
        return mark
    return dataclasses.replace(
        mark, ref=owned_id(task.owner, mark.ref), agent=owned_id(task.owner, mark.agent)
    )


async def _swept(stores: TaskStores, task_id: str, marks: Sequence[CleanupMark]) -> bool:
    try:
        await carry_out(stores, marks)
    except Exception as error:  # noqa: BLE001 - one task's damage must not stop the others'
        _log.error(
            "task %s of tenant %s: cannot clean up after it, will try again: %s",
            *(task_id, stores.tenant, error),
            extra={"task": task_id, "tenant": stores.tenant},
            exc_info=not isinstance(error, HoldfastError),
        )
        return False
    return True


@renamed(context_id="session_id")
async def clear_context(stores: TaskStores, session_id: str, *, owner: str | None = None) -> int:
    """Delete a context's tasks, files, state, transcript and memory. Returns how many tasks it had.

    Facts stay, because they belong to the agent. After a crash in the middle, call it again to
    finish; a sweep releases the blobs. ::

        await clear_context(state, "c1", owner="ana")
    """
    removed = await stores.tasks.clear_context(session_id, owner=owner)
    marks = await stores.tasks.list_context_cleanup(session_id, owner=owner)
    earlier = await earlier_files(stores, session_id, owner or "")
    for _, of_task in _by_task(marks + earlier):
        await carry_out(stores, of_task)
    if earlier:
        await forget_files(stores, session_id, owner or "")
    owned = stores.for_owner(owner or "")
    await owned.episodes.clear(session_id)
    await owned.short_term.clear(session_id)
    return removed


async def carry_out(stores: TaskStores, marks: Sequence[CleanupMark]) -> None:
    """Process the marks of one ended task (release blobs, clear transcripts), then delete them.

    ::

        await carry_out(state, await state.tasks.list_cleanup(task_id))
    """
    for mark in marks:
        if mark.kind == "run":
            await stores.history.clear_run(
                AgentId.parse(mark.agent), session_id=mark.ref, run_id=mark.task_id
            )
    files = [mark.ref for mark in marks if mark.kind == "file"]
    kept = await _keep_files(stores, marks[0].task_id, files) if files else set[str]()
    blobs = [mark.ref for mark in marks if mark.kind != "run" and mark.ref not in kept]
    # A fork and its original task share blobs: the last one to be cleaned up releases them.
    shared = await stores.tasks.held_elsewhere(marks[0].task_id, blobs) if blobs else set[str]()
    for ref in blobs:
        if ref not in shared:
            await release(stores.blobs, ref)
    await stores.tasks.delete_cleanup(marks)


async def _keep_files(stores: TaskStores, task_id: str, files: list[str]) -> set[str]:
    """Keep the files that the task's artifacts use for as long as the task; return their refs."""
    task = await stores.tasks.get(task_id, owner=ANY_OWNER, messages_limit=0)
    used = set[str]() if task is None else {ref for one in task.artifacts for ref in _refs(one)}
    used &= set(files)
    if used and not await stores.tasks.keep_files(task_id, sorted(used)):
        # The context has been cleared meanwhile.
        return set()
    return used


def _by_task(marks: Iterable[CleanupMark]) -> list[tuple[str, list[CleanupMark]]]:
    ordered = sorted(marks, key=lambda mark: mark.task_id)
    return [(task_id, list(of)) for task_id, of in groupby(ordered, key=lambda one: one.task_id)]


def _refs(artifact: Artifact) -> list[str]:
    return [ref for part in artifact.parts if (ref := getattr(part, "blob_ref", None))]
