"""What must not outlive a task, released and cleared when it has ended, whatever died in between.

Before a handler writes something of the kind, a mark is stored in the ledger. When the task has
ended, whoever comes first does what its marks say and then deletes them: the worker that ran it, or
a later sweep.
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
from holdfast.values.errors import HoldfastError
from holdfast.values.identity import AgentId
from holdfast.values.owners import ANY_OWNER, owned_id
from holdfast.values.tasks.cleanup import CleanupKind, CleanupMark
from holdfast.values.tasks.records import Artifact, TaskRecord

_log = logging.getLogger("holdfast.worker")


class Cleanup:
    """The marks of one task at work.

    ::

        cleanup = Cleanup(state, held, "researcher", task.context_id)
        await cleanup.of_run()
    """

    def __init__(self, stores: TaskStores, held: RunningTask, agent: str, session_id: str) -> None:
        self._stores = stores
        self._held = held
        self._agent = agent
        self._session_id = session_id
        self._of_run = False
        # Only a task that was claimed before can have marks that are not of this run.
        self._marked = held.lease.fence > 1

    async def of_run(self) -> None:
        """The messages of this run are to be cleared."""
        if not self._of_run:
            await self._add("run", self._session_id, agent=self._agent)
            self._of_run = True

    async def of_blob(self, ref: str) -> None:
        """A blob that only the handler needs is to be let go."""
        await self._add("blob", ref)

    async def of_file(self, ref: str) -> None:
        """A blob is to be let go unless it is part of an artifact."""
        await self._add("file", ref)

    async def _add(self, kind: CleanupKind, ref: str, *, agent: str = "") -> None:
        # Before the call: an answer that is lost may be that of a mark that was stored.
        self._marked = True
        await self._stores.tasks.add_cleanup(self._held.lease, kind, ref, agent=agent)

    async def finish(self) -> None:
        """Carry the marks out now, if there are any: the task has ended."""
        if not self._marked:
            return
        task_id = self._held.lease.task_id
        try:
            await carry_out(self._stores, await self._stores.tasks.list_cleanup(task_id))
        except HoldfastError as error:
            # The task has ended all the same, and its marks are due until they are carried out.
            _log.warning("task %s: a sweep will clean up after it: %s", task_id, error)


async def sweep(stores: TaskStores) -> int:
    """Clean up after tasks of a tenant whose worker died before it could; how many.

    A mark that cannot be carried out is logged and is due again later; it stops no other. ::

        await sweep(state)
    """
    found = _by_task(await stores.tasks.claim_cleanup())
    return sum([await _swept(stores, task_id, marks) for task_id, marks in found])


async def sweep_earlier(stores: TaskStores) -> bool:
    """The same for what earlier versions marked; whether marks of live tasks are left.

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
    """The mark of a run by the ids that it has since its session belongs to its owner."""
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


async def clear_context(stores: TaskStores, context_id: str, *, owner: str | None = None) -> int:
    """Remove a context: tasks, files, state, transcript and memory; how many tasks.

    Facts stay: they are the agent's. After a crash in the middle, the same call finishes it; a
    sweep releases the blobs. ::

        await clear_context(state, "c1", owner="ana")
    """
    removed = await stores.tasks.clear_context(context_id, owner=owner)
    marks = await stores.tasks.list_context_cleanup(context_id, owner=owner)
    earlier = await earlier_files(stores, context_id, owner or "")
    for _, of_task in _by_task(marks + earlier):
        await carry_out(stores, of_task)
    if earlier:
        await forget_files(stores, context_id, owner or "")
    owned = stores.for_owner(owner or "")
    await owned.episodes.clear(context_id)
    await owned.short_term.clear(context_id)
    return removed


async def carry_out(stores: TaskStores, marks: Sequence[CleanupMark]) -> None:
    """Do what the marks of one ended task say, then delete them.

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
    for mark in marks:
        if mark.kind != "run" and mark.ref not in kept:
            await release(stores.blobs, mark.ref)
    await stores.tasks.delete_cleanup(marks)


async def _keep_files(stores: TaskStores, task_id: str, files: list[str]) -> set[str]:
    """Keep what the task's artifacts are made of for as long as the task; what was kept."""
    task = await stores.tasks.get(task_id, owner=ANY_OWNER, messages_limit=0)
    used = set[str]() if task is None else {ref for one in task.artifacts for ref in _refs(one)}
    used &= set(files)
    if used and not await stores.tasks.keep_files(task_id, sorted(used)):
        # The context was cleared just now.
        return set()
    return used


def _by_task(marks: Iterable[CleanupMark]) -> list[tuple[str, list[CleanupMark]]]:
    ordered = sorted(marks, key=lambda mark: mark.task_id)
    return [(task_id, list(of)) for task_id, of in groupby(ordered, key=lambda one: one.task_id)]


def _refs(artifact: Artifact) -> list[str]:
    return [ref for part in artifact.parts if (ref := getattr(part, "blob_ref", None))]
