"""A2A's methods on the task ledger; every instance returns the same results."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC

from a2a.server.events import Event
from a2a.server.request_handlers import RequestHandler
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import (
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from holdfast.runtime.outcome import is_reply
from holdfast.server.addresses import AddressGuard
from holdfast.server.answer_room import Room
from holdfast.server.answers import answers, streams
from holdfast.server.caller import Call
from holdfast.server.card import Cards
from holdfast.server.files import FileLinks
from holdfast.server.intake import Intake
from holdfast.server.key_watch import KeyWatch
from holdfast.server.limits import KeyLimits
from holdfast.server.metrics import Metrics
from holdfast.server.options import ServiceOptions
from holdfast.server.push_configs import PushConfigs
from holdfast.server.schema import check_page_size
from holdfast.server.streams import Timeline
from holdfast.server.wire import TASK, blocks_of, message_to_wire, states_of, task_to_wire
from holdfast.values.errors import InvalidInputError
from holdfast.values.lifecycle import TERMINAL, WAITING, TaskState
from holdfast.values.tasks.records import TaskRecord

PAGE_SIZE = 50
_FRESH = 2
"""Version of a task that was just submitted: it has only its first message."""


class LedgerRequestHandler(PushConfigs, RequestHandler):
    """The SDK's ``RequestHandler``; it keeps no state in this process."""

    def __init__(
        self,
        intake: Intake,
        timeline: Timeline,
        files: FileLinks,
        guard: AddressGuard,
        *,
        cards: Cards,
        metrics: Metrics,
        options: ServiceOptions,
        limits: KeyLimits,
        watch: KeyWatch,
    ) -> None:
        self._intake = intake
        self._timeline = timeline
        self._files = files
        self.guard = guard
        self._cards = cards
        self.metrics = metrics
        self.options = options
        self.limits = limits
        self.watch = watch
        self.streams = 0

    @answers("GetTask")
    async def on_get_task(self, params: a2a.GetTaskRequest, call: Call) -> a2a.Task | None:
        """Return a task of the caller."""
        return await self.task(call, params.id, history_length=_history(params))

    @answers("ListTasks")
    async def on_list_tasks(
        self, params: a2a.ListTasksRequest, call: Call
    ) -> a2a.ListTasksResponse:
        """Return a page of the caller's tasks, ordered by last change of state, newest first."""
        size = params.page_size if params.HasField("page_size") else PAGE_SIZE
        check_page_size(size)
        since = None
        if params.HasField("status_timestamp_after"):
            since = params.status_timestamp_after.ToDatetime(tzinfo=UTC)
        page = await call.state.tasks.list(
            owner=call.reads,
            session_id=params.context_id or None,
            states=states_of(params.status) if params.status else None,
            updated_after=since,
            limit=size,
            cursor=params.page_token or None,
            # If it is unset, the server chooses: a page of whole conversations would be too large.
            messages_limit=_history(params) or 0,
            artifacts=params.include_artifacts,
            children=call.caller.operates,
            count=True,
            max_bytes=self.options.max_answer_bytes,
        )
        room = Room(self.options.max_answer_bytes)
        return a2a.ListTasksResponse(
            tasks=[await self._shown(call, task, room) for task in page.tasks if call.sees(task)],
            next_page_token=page.next_cursor or "",
            page_size=size,
            total_size=page.total or 0,
        )

    @answers("CancelTask", writes=True)
    async def on_cancel_task(self, params: a2a.CancelTaskRequest, call: Call) -> a2a.Task | None:
        """Cancel a task. For a running task, wait up to ``cancel_seconds`` for its worker."""
        before = await self.found(call, params.id)
        if before.terminal:
            raise TaskNotCancelableError
        task = await call.state.tasks.cancel(params.id, owner=call.owner, by=call.by)
        if task.cancel_requested and not task.terminal:
            await self._timeline.settled(call.state, task, seconds=self.options.cancel_seconds)
            task = await self.found(call, params.id)
        if task.terminal and task.state is not TaskState.CANCELED:
            raise TaskNotCancelableError
        return await self.task(call, params.id)

    @answers("SendMessage", writes=True)
    async def on_message_send(
        self, params: a2a.SendMessageRequest, call: Call
    ) -> a2a.Task | a2a.Message:
        """Submit a task or answer one, and wait for its outcome unless the client asks not to.

        Returns a message if the handler replied with one, otherwise the task.
        """
        length = _history(params.configuration)
        task = await self._intake.take(call, params)
        if not params.configuration.return_immediately:
            await self._timeline.settled(call.state, task, seconds=self.options.wait_seconds)
        found = await self._whole(call, task.id, length)
        return await (self._reply(call, found) if is_reply(found) else self._shown(call, found))

    @streams("SendStreamingMessage", writes=True)
    async def on_message_send_stream(
        self, params: a2a.SendMessageRequest, call: Call
    ) -> AsyncGenerator[Event, None]:
        """Submit a task or answer one, and stream its events until it ends or asks a question."""
        length, cursor = _history(params.configuration), _cursor(call)
        taken = await self._intake.take(call, params)
        wait = self.options.reply_seconds
        if cursor is None and await self._timeline.replied(call.state, taken, seconds=wait):
            found = await self._whole(call, taken.id)
            call.event_ids.append(str(found.version))
            yield await self._reply(call, found)
            return
        # The task as it was at that version: later changes by a worker are events of the stream.
        task = await self._then(call, taken)
        if length is not None:
            task = replace(task, messages=task.messages[-length:] if length else [])
        async with aclosing(self._events(call, task, cursor, stop_at_question=True)) as events:
            async for event in events:
                yield event

    @streams("SubscribeToTask")
    async def on_subscribe_to_task(
        self, params: a2a.SubscribeToTaskRequest, call: Call
    ) -> AsyncGenerator[Event, None]:
        """Stream the task and its later events; with a cursor, only the events after it."""
        cursor = _cursor(call)
        task = await self._whole(call, params.id)
        if task.terminal and (cursor is None or cursor >= task.version):
            raise UnsupportedOperationError(
                message=f"the task is {task.state}: call GetTask instead"
            )
        async with aclosing(self._events(call, task, cursor)) as events:
            async for event in events:
                yield event

    @answers("GetExtendedAgentCard")
    async def on_get_extended_agent_card(
        self, params: a2a.GetExtendedAgentCardRequest, call: Call
    ) -> a2a.AgentCard:
        """Return the extended card, which also has the skills that are not public."""
        del params
        old = call.over_http and not call.header("a2a-version").startswith("1")
        card = self._cards.extended_old if old else self._cards.extended
        if card is None:
            raise UnsupportedOperationError(message="the agent card is the same for everybody")
        return card

    async def _events(
        self, call: Call, task: TaskRecord, cursor: int | None, *, stop_at_question: bool = False
    ) -> AsyncGenerator[Event, None]:
        """Yield the task, unless the client sent a cursor, then its events."""
        if cursor is not None and cursor > task.version:
            raise InvalidInputError("Last-Event-ID", "must be an id that this task's stream sent")
        after = cursor
        if after is None:
            after = task.version
            call.event_ids.append(str(after))
            yield await self._shown(call, task)
        ends = TERMINAL | WAITING if stop_at_question else TERMINAL
        # If the task has ended or waits already, only the missed events are left.
        source = (
            self._timeline.missed(call.state, task, after=after)
            if task.state in ends
            else self._timeline.follow(call.state, task, after=after, ended=call.ended)
        )
        async with aclosing(source) as news:
            async for one in news:
                call.event_ids.append(str(one.seq))
                yield one.update
                if one.state in ends and one.seq > task.version:
                    return

    async def _then(self, call: Call, taken: TaskRecord) -> TaskRecord:
        """Return a task as of the version ``taken``; truncated if it is too large to replay."""
        if taken.version > _FRESH:
            now = await self._whole(call, taken.id)
            if now.truncated:
                said = [one for one in now.messages if (one.seq or 0) <= taken.version]
                return replace(taken, messages=said, truncated=True)
        task = await call.state.tasks.replay(taken.id, taken.version, owner=call.owner)
        if task is None:
            raise TaskNotFoundError
        return task

    async def task(
        self, call: Call, task_id: str, *, history_length: int | None = None
    ) -> a2a.Task:
        """Return a task that the caller may read, as an A2A ``Task``."""
        return await self._shown(call, await self._whole(call, task_id, history_length))

    async def _whole(
        self, call: Call, task_id: str, history_length: int | None = None
    ) -> TaskRecord:
        task = await call.state.tasks.get(
            task_id,
            owner=call.reads,
            messages_limit=history_length,
            max_bytes=self.options.max_answer_bytes,
        )
        if task is None or not call.sees(task):
            raise TaskNotFoundError
        return task

    async def found(self, call: Call, task_id: str) -> TaskRecord:
        """Return a task of the caller without its messages and artifacts."""
        task = await call.state.tasks.get(
            task_id, owner=call.owner, messages_limit=0, artifacts=False
        )
        if task is None or not call.sees(task):
            raise TaskNotFoundError
        return task

    async def _reply(self, call: Call, task: TaskRecord) -> a2a.Message:
        """Return the reply of a task's handler as a message without a task id."""
        said = task.status_message
        if said is None:
            raise TaskNotFoundError
        files = await self._files.of(call.state, said.content, task_id=task.id)
        message = message_to_wire(said, context_id=task.session_id, files=files)
        message.metadata[TASK] = task.id
        return message

    async def _shown(self, call: Call, task: TaskRecord, room: Room | None = None) -> a2a.Task:
        room = Room(self.options.max_answer_bytes) if room is None else room
        said = room.newest(task.messages)
        if len(said) < len(task.messages):
            task = replace(task, messages=said, truncated=True)
        files = await self._files.of(call.state, blocks_of(task), task_id=task.id, room=room)
        return task_to_wire(task, files=files)


def _history(
    params: a2a.GetTaskRequest | a2a.ListTasksRequest | a2a.SendMessageConfiguration,
) -> int | None:
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise InvalidInputError("history_length", "must be 0 or more")
    return int(params.history_length)


def _cursor(call: Call) -> int | None:
    given = call.header("last-event-id")
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise InvalidInputError("Last-Event-ID", "must be an id that a stream of this service sent")
    return int(given)
