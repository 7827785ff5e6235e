"""``HoldfastEventStream``: the SDK's ``TaskEventStream``, read from timelines of tasks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from a2a.server.cluster.event_stream import TaskEventStream, VersionedEvent
from a2a.server.cluster.version import TaskVersion
from a2a.server.events.event_queue import Event
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError

from holdfast.adapters.a2a.messages import from_record, from_status, notes, parsed, to_parts
from holdfast.adapters.keys import id_of
from holdfast.blocking import Portal
from holdfast.values.content import ChatMessage
from holdfast.values.errors import NotFoundError
from holdfast.values.tasks.events import ArtifactChunk, TaskEvent, Transition
from holdfast.wiring.state import State


class HoldfastEventStream(TaskEventStream):
    """The events of tasks in ``HoldfastVersionedTaskStore``, on every replica.

    The store writes an event together with the changed task, so ``publish`` does nothing. A
    subscriber reads the timeline of the task and is notified of new entries. ::

        stream = HoldfastEventStream(state)
    """

    def __init__(self, state: State | Portal) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)

    async def publish(self, task_id: str, event: VersionedEvent) -> None:
        """Do nothing: the event was stored with its task."""

    async def destroy(self, task_id: str) -> None:
        """Do nothing: a subscription ends when its task has ended."""

    async def subscribe(
        self, task_id: str, *, after: TaskVersion
    ) -> AsyncGenerator[VersionedEvent, None]:
        """Yield the events of a task after the given version, until the task has ended."""
        seen = after._value if isinstance(after._value, int) else 0  # noqa: SLF001 - as the store
        found = _read(self._portal.state, task_id, seen)
        try:
            while True:
                try:
                    event = await self._portal.arun(_next(found), settle=False)
                except NotFoundError:
                    raise TaskNotFoundError from None
                if event is None:
                    return
                yield event
        finally:
            await self._portal.arun(_close(found))


async def _next(found: AsyncGenerator[VersionedEvent, None]) -> VersionedEvent | None:
    return await anext(found, None)


async def _close(found: AsyncGenerator[VersionedEvent, None]) -> None:
    await found.aclose()


async def _read(state: State, task_id: str, seen: int) -> AsyncGenerator[VersionedEvent, None]:
    """Yield the events of a task after version ``seen``. It runs on the event loop of the state."""
    name = id_of(task_id)
    reading = _Reading(state, task_id)
    async for event in state.tasks.follow(name, after_seq=seen):
        made = await reading.event(event)
        if made is not None:
            yield VersionedEvent(made, TaskVersion(event.seq))


class _Reading:
    """Converts the entries of a task's timeline to events of the SDK."""

    def __init__(self, state: State, task_id: str) -> None:
        self._state = state
        self._task_id = task_id
        self._said: dict[str, ChatMessage] = {}

    async def event(self, event: TaskEvent) -> Event | None:
        """Return the SDK event that this entry completes; ``None`` if it completes none."""
        body = event.body
        if isinstance(body, ChatMessage):
            self._said[body.id] = body
        if isinstance(body, ArtifactChunk) and "event" in body.metadata:
            kept = body.metadata["event"]
            artifact = {**kept["artifact"], "parts": to_parts(body.parts)}
            return parsed({**kept, "artifact": artifact}, pb.TaskArtifactUpdateEvent())
        if not isinstance(body, Transition) or body.from_state is None:
            return None
        kept = notes(body.note)
        if "task" in kept or (body.message_id and body.message_id not in self._said):
            task = await self._state.tasks.replay(event.task_id, event.seq)
            if task is None:  # deleted since
                return None
            if "task" in kept:
                then = kept["task"] if isinstance(kept["task"], dict) else {}
                return from_record(task, self._task_id, then)
            return self._status(body, task.status_message, kept)
        return self._status(body, self._said.get(body.message_id), kept)

    def _status(
        self, move: Transition, said: ChatMessage | None, kept: dict[str, Any]
    ) -> pb.TaskStatusUpdateEvent:
        made = {
            "taskId": self._task_id,
            "status": from_status(move.to_state, move.note, said),
            "contextId": kept.get("context", ""),
        }
        if "event" in kept:
            made["metadata"] = kept["event"]
        return parsed(made, pb.TaskStatusUpdateEvent())
