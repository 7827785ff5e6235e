"""Streams the events of a task to a client: in order, each event once, from any instance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from a2a.types import a2a_pb2 as a2a

from holdfast.runtime.outcome import REPLIED, is_reply
from holdfast.server.files import PAGE_BYTES, FileLinks
from holdfast.server.json_values import object_to_wire
from holdfast.server.wire import artifact_to_wire, status_to_wire
from holdfast.values.content import ChatMessage
from holdfast.values.lifecycle import TERMINAL, WAITING, TaskState
from holdfast.values.tasks.events import ArtifactChunk, EventBody, TaskEvent, Transition
from holdfast.values.tasks.records import TaskRecord
from holdfast.wiring.state import State

T = TypeVar("T")
_PAGE = 100
Update = a2a.TaskStatusUpdateEvent | a2a.TaskArtifactUpdateEvent


@dataclass(frozen=True, slots=True)
class News:
    """One event of a task that is sent to clients."""

    seq: int
    update: Update
    state: TaskState | None = None
    """The task's new state; ``None`` if the event does not change the state."""


class Timeline:
    """Follows tasks for clients until they end, the client leaves or the service stops.

    What it sends for an event depends only on the timeline, so every instance sends the same.
    """

    def __init__(self, files: FileLinks, closing: asyncio.Event) -> None:
        self._files = files
        self._closing = closing

    async def follow(
        self, state: State, task: TaskRecord, *, after: int, ended: asyncio.Event | None = None
    ) -> AsyncGenerator[News, None]:
        """Yield the events of a task after a cursor, as they happen, until ``ended`` is set."""
        events = state.tasks.follow(task.id, after_seq=after, owner=task.owner)
        ends = [self._closing, *([ended] if ended else [])]
        async with aclosing(until(ends, events)) as open_events:
            async for event in open_events:
                if news := await self.news(state, task, event):
                    yield news

    async def missed(
        self, state: State, task: TaskRecord, *, after: int
    ) -> AsyncGenerator[News, None]:
        """Yield the stored events of a task after a cursor, up to the record's version."""
        while after < task.version:
            page = await state.tasks.events(
                task.id,
                after_seq=after,
                limit=min(_PAGE, task.version - after),
                owner=task.owner,
                max_bytes=PAGE_BYTES,
            )
            for event in page:
                if news := await self.news(state, task, event):
                    yield news
            after = page[-1].seq if page else task.version

    async def news(self, state: State, task: TaskRecord, event: TaskEvent) -> News | None:
        """Return what is sent to clients for an event; ``None`` for an internal event."""
        body = event.body
        if isinstance(body, ArtifactChunk):
            files = await self._files.of(state, body.parts, task_id=task.id)
            piece = a2a.TaskArtifactUpdateEvent(
                task_id=task.id,
                context_id=task.session_id,
                artifact=artifact_to_wire(body, files=files),
                append=body.append,
                last_chunk=body.last_chunk,
            )
            return News(event.seq, piece)
        if isinstance(body, Transition):
            said = await self._said(state, task, event, body.message_id)
            return News(event.seq, await self._status(state, task, body, said), body.to_state)
        if isinstance(body, ChatMessage) and body.role != "user":
            then = await self._next(state, task, event)
            if isinstance(then, Transition) and then.message_id == body.id:
                # The message was written with this change of state and is sent with it.
                return None
            here = Transition(task.id, 0, None, TaskState.WORKING, event.at, event.by)
            return News(event.seq, await self._status(state, task, here, body))
        return None

    async def _said(
        self, state: State, task: TaskRecord, event: TaskEvent, message_id: str
    ) -> ChatMessage | None:
        """Return the message of a change of state: it is the event right before it."""
        if not message_id or event.seq < 2:
            return None
        before = await state.tasks.events(
            task.id, after_seq=event.seq - 2, limit=1, owner=task.owner
        )
        body = before[0].body if before else None
        return body if isinstance(body, ChatMessage) and body.id == message_id else None

    async def _status(
        self, state: State, task: TaskRecord, at: Transition, said: ChatMessage | None
    ) -> a2a.TaskStatusUpdateEvent:
        blocks = said.content if said else []
        files = await self._files.of(state, blocks, task_id=task.id)
        update = a2a.TaskStatusUpdateEvent(
            task_id=task.id,
            context_id=task.session_id,
            status=status_to_wire(at, context_id=task.session_id, message=said, files=files),
        )
        if at.to_state is TaskState.PAUSED:
            update.metadata.CopyFrom(object_to_wire({"paused": True}))
        return update

    async def settled(self, state: State, task: TaskRecord, *, seconds: float) -> bool:
        """Wait until a task has ended or waits for its client. Returns false on a timeout."""
        if task.state in TERMINAL | WAITING:
            return True
        events = state.tasks.follow(task.id, after_seq=task.version, owner=task.owner)
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(until([self._closing], events)) as open_events,
            ):
                async for event in open_events:
                    body = event.body
                    if isinstance(body, Transition) and body.to_state in TERMINAL | WAITING:
                        return True
        except TimeoutError:
            return False
        return False

    async def replied(self, state: State, task: TaskRecord, *, seconds: float) -> bool:
        """Wait until the handler of a new task acts. Returns whether it called ``task.reply()``."""
        if task.state in TERMINAL | WAITING:
            return is_reply(task)
        events = state.tasks.follow(task.id, after_seq=task.version, owner=task.owner)
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(until([self._closing], events)) as open_events,
            ):
                async for event in open_events:
                    body: EventBody | None = event.body
                    if isinstance(body, ChatMessage):
                        # A reply is written together with the change of state that follows it.
                        body = await self._next(state, task, event)
                    if not (isinstance(body, Transition) and body.to_state is TaskState.WORKING):
                        return isinstance(body, Transition) and body.note == REPLIED
        except TimeoutError:
            return False
        return False

    async def _next(self, state: State, task: TaskRecord, event: TaskEvent) -> EventBody | None:
        after = await state.tasks.events(task.id, after_seq=event.seq, limit=1, owner=task.owner)
        return after[0].body if after else None


async def until(ends: Iterable[asyncio.Event], items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """Yield the items until there are no more or one of ``ends`` is set.

    ::

        async for event in until([closing], ledger.follow(task.id)):
            ...
    """

    async def following() -> T:
        return await anext(items)

    stops = [asyncio.create_task(one.wait()) for one in ends]
    step: asyncio.Task[T] | None = None
    try:
        while not any(one.done() for one in stops):
            step = asyncio.create_task(following())
            await asyncio.wait({step, *stops}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                return
            try:
                item = step.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        tasks: list[asyncio.Task[Any]] = [*stops, *([step] if step else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(items, AsyncGenerator):
            await items.aclose()
