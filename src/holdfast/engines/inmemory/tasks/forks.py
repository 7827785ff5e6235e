"""Forks in memory: new tasks that continue from the stored steps of another task."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.engines.inmemory.tasks.client import InMemoryClients, first_of
from holdfast.engines.inmemory.tasks.data import MarkRow, TaskRow
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.forks import CHILD_STEP, ForkDraft, ForkStorage
from holdfast.spi.tasks.records import StoredEvent, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage, StoredStep
from holdfast.values.codec import decode_json
from holdfast.values.errors import IllegalTransitionError
from holdfast.values.lifecycle import Actor, TaskState


class InMemoryForks(InMemoryClients, ForkStorage):
    """Stores forks: new tasks that continue from the stored steps of another task."""

    async def fork(self, key: TaskKey, draft: ForkDraft) -> TaskSnapshot:
        """Store a new task with the steps, messages and artifacts of another task."""
        old = self._steered(*key)
        first = first_of(old)
        assert first is not None, "only a task that was adopted may have no message"  # noqa: S101
        made = Draft(
            old.agent,
            draft.message or first,
            session_id=old.session_id if draft.failed else draft.new_session_id,
            owner=old.owner,
            metadata=old.metadata,
            submit_key=draft.submit_key,
            max_attempts=old.max_attempts,
            retry_of=old.id,
            priority=old.priority,
            key=old.key,
            id=draft.id,
        )
        known = self._submitted(made, draft.digest)
        if known is not None:
            return known.snapshot()
        if draft.failed and old.state is not TaskState.FAILED:
            raise IllegalTransitionError(
                "task", old.id, from_state=old.state, to_state=TaskState.SUBMITTED
            )
        row = self._row(made, made.session_id)
        if draft.submit_key:
            self._data.keys[row.owner, row.submit_key] = (draft.digest, row.id)
        with self._acting(draft.by):
            self._move(row, TaskState.SUBMITTED, Actor.CLIENT)
        events = old.events if draft.at_seq is None else old.events[: draft.at_seq]
        for event in _taken_over(events):
            if not self._is_open_child(old, event):
                self._take_over(row, event, draft)
        for (kind, ref), mark in self._data.cleanup.get(old.id, {}).items():
            if kind != "run":
                copied = replace(mark.mark, task_id=row.id)
                rows = self._data.cleanup.setdefault(row.id, {})
                rows[kind, ref] = MarkRow(copied, row.owner, row.session_id)
        return row.snapshot()

    def _is_open_child(self, old: TaskRow, event: StoredEvent) -> bool:
        """Return whether a step names a child of the old task that is not completed."""
        step = event.body
        if not isinstance(step, StoredStep) or step.key.kind != CHILD_STEP or not step.fence:
            return False
        named = decode_json(step.result)
        child = self._data.tasks.get(named.get("task_id", "")) if isinstance(named, dict) else None
        done = child is not None and child.state is TaskState.COMPLETED
        return not (done and child is not None and child.parent_id == old.id)

    def _take_over(self, row: TaskRow, event: StoredEvent, draft: ForkDraft) -> None:
        now = self._engine.now()
        match event.body:
            case StoredMessage() as said:
                if event.seq == 2 and draft.message is not None:
                    said = draft.message
                stored = said._replace(seq=row.version + 1)
                self._log(row, event.by, stored, now)
                row.messages[stored.id] = stored
                if not draft.failed:
                    self._context(row).messages.append((row.id, stored.id))
            case StoredStep() as step:
                kept = replace(step, stored_at=now, fence=0)
                row.steps[step.key] = kept
                row.said[step.key] = self._data.tasks[row.retry_of].said[step.key]
                self._log(row, event.by, kept, now)
            case StoredChunk() as chunk:
                kept_chunk = replace(chunk, fence=0)
                held = row.chunks.setdefault(chunk.artifact_id, [])
                if not chunk.append:
                    held.clear()
                held.append((kept_chunk, now))
                if chunk.step is not None:
                    row.step_chunks.setdefault((chunk.step, 0), []).append(kept_chunk)
                self._log(row, event.by, kept_chunk, now)

    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> Collection[str]:
        """Return those of the refs that another task still uses."""
        return {
            ref
            for other, rows in self._data.cleanup.items()
            for (_, ref), row in rows.items()
            if other != task_id and row.due_at is None and ref in refs
        }


def _taken_over(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """Return the events that a fork copies: messages, steps and current chunks of artifacts.

    Older chunks are included if they belong to the stored result of a step.
    """
    anew: dict[str, int] = {}
    fences = {}
    for event in events:
        if isinstance(event.body, StoredChunk) and not event.body.append:
            anew[event.body.artifact_id] = event.seq
        if isinstance(event.body, StoredStep):
            fences[event.body.key] = event.fence
    found = []
    for event in events:
        match event.body:
            case StoredChunk() as chunk:
                current = event.seq >= anew.get(chunk.artifact_id, 0)
                if current or (chunk.step and fences.get(chunk.step) == chunk.fence):
                    found.append(event)
            case StoredMessage() | StoredStep():
                found.append(event)
    return found
