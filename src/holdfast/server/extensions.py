"""JSON-RPC methods that A2A does not have: contexts, feedback, pause and resume."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from a2a.compat.v0_3.conversions import to_compat_message, to_compat_task
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import serialize_list_tasks_response
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, VersionNotSupportedError
from google.protobuf.json_format import MessageToDict

from holdfast.runtime.cleanup import clear_context
from holdfast.server.answer_room import Room
from holdfast.server.answers import answers
from holdfast.server.caller import CALL, Call
from holdfast.server.handler import PAGE_SIZE, LedgerRequestHandler
from holdfast.server.old_schema import own_misfit
from holdfast.server.reading import parsed
from holdfast.server.schema import check_page_size
from holdfast.server.wire import message_to_wire
from holdfast.values.checks import check_unreserved
from holdfast.values.errors import InvalidInputError
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import ContextRecord

PAGE_MESSAGES = 100
"""Default number of messages in a page of a context."""

MAX_MESSAGES = 1000
_VERSION = re.compile(r"[01](\.\d{1,3}){0,2}")


class _ContextsList(msgspec.Struct, rename="camel"):
    page_size: int = PAGE_SIZE
    page_token: str = ""
    tenant: str = ""


class _ContextsGet(msgspec.Struct, rename="camel"):
    context_id: str
    history_length: int = PAGE_MESSAGES
    tenant: str = ""


class _ContextsClear(msgspec.Struct, rename="camel"):
    context_id: str
    tenant: str = ""


class _TaskOf(msgspec.Struct, rename="camel"):
    id: str
    tenant: str = ""


class _FeedbackOn(msgspec.Struct, rename="camel"):
    id: str
    text: str
    rating: int | None = None
    metadata: dict[str, Any] | None = None
    feedback_id: str = ""
    tenant: str = ""


P = TypeVar("P", _ContextsList, _ContextsGet, _ContextsClear, _TaskOf, _FeedbackOn)


class Extensions:
    """Holdfast's own methods, with the same authorization and errors as A2A's.

    ::

        result = await extensions.serve("tasks/pause", {"id": task_id}, call)
    """

    def __init__(self, handler: LedgerRequestHandler) -> None:
        self._handler = handler
        self.metrics = handler.metrics
        self.options = handler.options
        self.limits = handler.limits
        self.watch = handler.watch
        self.streams = 0
        self._methods: dict[str, Callable[[Any, Call], Awaitable[Any]]] = {
            "contexts/list": self._with(_ContextsList, self._contexts_list),
            "contexts/get": self._with(_ContextsGet, self._contexts_get),
            "contexts/clear": self._with(_ContextsClear, self._contexts_clear),
            "tasks/feedback": self._with(_FeedbackOn, self._feedback),
            "tasks/pause": self._with(_TaskOf, self._pause),
            "tasks/resume": self._with(_TaskOf, self._resume),
            "tasks/list": self._list,
        }

    def __contains__(self, method: object) -> bool:
        return method in self._methods

    async def serve(self, method: str, params: Any, call: Call) -> Any:
        """Call a method and return its result."""
        version = call.header("a2a-version")
        if version and not _VERSION.fullmatch(version):
            raise VersionNotSupportedError
        return await self._methods[method]({} if params is None else params, call)

    def _with(
        self,
        kind: type[P],
        method: Callable[[P, ServerCallContext], Awaitable[Any]],
    ) -> Callable[[Any, Call], Awaitable[Any]]:
        async def serve(params: Any, call: Call) -> Any:
            try:
                read = msgspec.convert(params, kind)
            except msgspec.ValidationError as error:
                raise InvalidParamsError(message=own_misfit(error)) from None
            context = ServerCallContext(state={CALL: call}, tenant=read.tenant)
            return await method(read, context)

        return serve

    @answers("contexts/list")
    async def _contexts_list(self, params: _ContextsList, call: Call) -> dict[str, Any]:
        check_page_size(params.page_size)
        page = await call.state.tasks.list_contexts(
            owner=call.reads,
            limit=params.page_size,
            cursor=params.page_token or None,
            children=call.caller.operates,
        )
        return {
            "contexts": [_context(one, call) for one in page.contexts],
            "nextPageToken": page.next_cursor or "",
        }

    @answers("contexts/get")
    async def _contexts_get(self, params: _ContextsGet, call: Call) -> dict[str, Any]:
        if not 0 <= params.history_length <= MAX_MESSAGES:
            raise InvalidInputError("history_length", f"must be from 0 to {MAX_MESSAGES}")
        found = await call.state.tasks.get_context(
            params.context_id,
            owner=call.owner,
            messages_limit=params.history_length,
            max_bytes=self.options.max_answer_bytes,
        )
        if found is None:
            raise TaskNotFoundError(message="there is no such context")
        said = Room(0).newest(found.messages)
        messages = [message_to_wire(one, context_id=found.id) for one in said]
        shown = [
            MessageToDict(one)
            if _modern(call)
            else to_compat_message(one).model_dump(mode="json", by_alias=True, exclude_none=True)
            for one in messages
        ]
        cut = {"truncated": True} if found.truncated or len(said) < len(found.messages) else {}
        return {**_context(found, call), "messages": shown, **cut}

    @answers("contexts/clear", writes=True)
    async def _contexts_clear(self, params: _ContextsClear, call: Call) -> dict[str, Any]:
        context_id = check_unreserved("contextId", params.context_id)
        removed = await clear_context(call.state, context_id, owner=call.owner)
        return {"contextId": params.context_id, "removedTasks": removed}

    @answers("tasks/feedback", writes=True)
    async def _feedback(self, params: _FeedbackOn, call: Call) -> dict[str, Any]:
        await self._handler.found(call, params.id)
        given = await call.state.tasks.append_feedback(
            params.id,
            params.text,
            rating=params.rating,
            metadata=params.metadata,
            feedback_id=check_unreserved(
                "feedbackId", params.feedback_id or call.header("idempotency-key")
            ),
            owner=call.owner,
        )
        when = given.created_at.isoformat()
        return {"id": given.task_id, "feedbackId": given.id, "createdAt": when}

    @answers("tasks/pause", writes=True)
    async def _pause(self, params: _TaskOf, call: Call) -> dict[str, Any]:
        await self._handler.found(call, params.id)
        await call.state.tasks.pause(params.id, owner=call.owner, by=call.by)
        return self._shaped(await self._handler.task(call, params.id), call)

    @answers("tasks/resume", writes=True)
    async def _resume(self, params: _TaskOf, call: Call) -> dict[str, Any]:
        await self._handler.found(call, params.id)
        await call.state.tasks.resume(params.id, owner=call.owner, by=call.by)
        return self._shaped(await self._handler.task(call, params.id), call)

    async def _list(self, params: Any, call: Call) -> dict[str, Any]:
        """Serve ``tasks/list``: ``ListTasks``, named as A2A 0.3 would have named it."""
        read = parsed(params, a2a.ListTasksRequest, strict=True)
        context = ServerCallContext(state={CALL: call}, tenant=read.tenant)
        found = await self._handler.on_list_tasks(read, context)
        answer: dict[str, Any] = serialize_list_tasks_response(found, read.include_artifacts)
        if not _modern(call):
            answer["tasks"] = [self._shaped(task, call) for task in found.tasks]
        return answer

    @staticmethod
    def _shaped(task: a2a.Task, call: Call) -> dict[str, Any]:
        """Return a task as JSON of the A2A version that the client uses."""
        if _modern(call):
            modern: dict[str, Any] = MessageToDict(task)
            return modern
        return to_compat_task(task).model_dump(mode="json", by_alias=True, exclude_none=True)


def _modern(call: Call) -> bool:
    return call.header("a2a-version").startswith("1")


def _context(one: ContextRecord, call: Call) -> dict[str, Any]:
    shown = {"contextId": one.id, "createdAt": one.created_at.isoformat(), "tasks": one.tasks}
    # Two owners may have contexts with the same id.
    return shown | ({"owner": one.owner} if call.reads is ANY_OWNER else {})
