"""Stores what a client sends: a new task, or the answer to a task's question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from holdfast.runtime.app import App
from holdfast.runtime.handlers import Handler
from holdfast.server.addresses import AddressGuard
from holdfast.server.caller import Call
from holdfast.server.errors import MESSAGE_ID
from holdfast.server.json_values import object_from_wire
from holdfast.server.options import ServiceOptions
from holdfast.server.push_request import check_push, push_from_wire
from holdfast.server.reading import check_part_count
from holdfast.server.wire import WIRE, message_from_wire
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.checks import check_optional_id, check_unreserved
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import WAITING
from holdfast.values.schedules import SCHEDULE_ID, SCHEDULED_AT
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import TaskRecord

AGENT = "holdfast.agent"
"""Metadata key of a send that names the agent, if an app has several."""

_MOST_REFERENCES = 50
_KEPT_OF_AN_ID = 64


class Intake:
    """Writes what clients send to the ledger, once.

    A client retries a send that failed with the same ``Idempotency-Key``, on any instance: the
    ledger knows whether the first one arrived.
    """

    def __init__(self, app: App, guard: AddressGuard, options: ServiceOptions) -> None:
        self._app = app
        self._guard = guard
        self._dedupe = options.dedupe_message_ids
        self._most_configs = options.push_configs
        self._most_bytes = options.max_task_bytes

    async def take(self, call: Call, params: a2a.SendMessageRequest) -> TaskRecord:
        """Submit a task or answer one. Returns the task's record after that."""
        said, push = params.message, self._push(params)
        for field, given in (
            ("message.contextId", said.context_id),
            ("message.messageId", said.message_id),
            ("Idempotency-Key", call.header("idempotency-key")),
        ):
            check_unreserved(field, check_optional_id(field, given))
        check_part_count(len(said.parts))
        if len(said.reference_task_ids) > _MOST_REFERENCES:
            raise InvalidParamsError(
                message=f"message.referenceTaskIds: must be at most {_MOST_REFERENCES} tasks"
            )
        for reference in said.reference_task_ids:
            await self._known(call, reference)
        if said.task_id:
            return await self._answer(call, said, push)
        key = call.header("idempotency-key")
        if not key and self._dedupe:
            key = f"{MESSAGE_ID}{said.message_id}"
        handler, metadata = self._meant(params)
        return await call.state.tasks.submit(
            handler.agent,
            message_from_wire(said),
            session_id=said.context_id,
            owner=call.owner,
            metadata=metadata,
            submit_key=key,
            max_attempts=handler.submit_attempts,
            push=push,
            by=call.by,
        )

    async def _answer(self, call: Call, said: a2a.Message, push: list[PushConfig]) -> TaskRecord:
        task = await self._known(call, said.task_id)
        if said.context_id and said.context_id != task.session_id:
            raise InvalidParamsError(
                message="message.contextId: is not the context of the task: leave it out"
            )
        # Check the size only if the task waits for an answer. Otherwise the ledger refuses the
        # answer, or knows it already because this is a retry.
        if task.state in WAITING:
            has = await call.state.tasks.message_bytes(task.id, owner=call.owner)
            if has > self._most_bytes:
                raise InvalidParamsError(
                    message=f"the task has {has} bytes of messages, and the limit is "
                    f"{self._most_bytes}: send a new task in the same context"
                )
        for config in push:
            await call.state.tasks.upsert_push_config(
                task.id, config, owner=call.owner, max_configs=self._most_configs
            )
        # An answer is idempotent by its message id, so the idempotency key becomes that id.
        key = call.header("idempotency-key")
        answer = message_from_wire(said, id=key)
        try:
            return await call.state.tasks.respond(task.id, answer, owner=call.owner, by=call.by)
        except ConflictError:
            if key or self._dedupe:
                raise
        # Many clients give several messages the same id: store this one under another id.
        return await call.state.tasks.respond(
            task.id, _renamed(answer), owner=call.owner, by=call.by
        )

    async def _known(self, call: Call, task_id: str) -> TaskRecord:
        found = await call.state.tasks.get(
            task_id, owner=call.owner, messages_limit=0, artifacts=False
        )
        if found is None or not call.sees(found):
            raise TaskNotFoundError
        return found

    def _push(self, params: a2a.SendMessageRequest) -> list[PushConfig]:
        if not params.configuration.HasField("task_push_notification_config"):
            return []
        config = params.configuration.task_push_notification_config
        return [check_push(push_from_wire(config, id=config.id or new_id()), self._guard)]

    def _meant(self, params: a2a.SendMessageRequest) -> tuple[Handler, dict[str, Any]]:
        """Return the handler that a send is for, and the task's metadata."""
        metadata = object_from_wire(params.metadata, field="metadata")
        for reserved in (SCHEDULE_ID, SCHEDULED_AT):
            if reserved in metadata:
                raise InvalidParamsError(
                    message=f"metadata.{reserved}: is set by schedules: use another name"
                )
        if AGENT in params.message.metadata:
            raise InvalidParamsError(
                message=f"message.metadata.{AGENT}: write it into the metadata of the request, "
                "beside message"
            )
        named = metadata.pop(AGENT, None)
        if named is None:
            own = self._app.agent in self._app.agents or len(self._app.agents) != 1
            named = self._app.name if own else str(self._app.agents[0])
        if not isinstance(named, str):
            raise InvalidParamsError(message=f"metadata.{AGENT}: must be text")
        try:
            return self._app.handler_of(named), metadata
        except NotFoundError:
            known = ", ".join(map(str, self._app.agents))
            raise InvalidParamsError(
                message=f"metadata.{AGENT}: there is no such agent: must be one of {known}"
            ) from None


def _renamed(message: ChatMessage) -> ChatMessage:
    """Return the message under a unique id, the same on a retry; clients see their own id."""
    kept = {**message.metadata.get(WIRE, {}), "messageId": message.id}
    return replace(
        message,
        id=f"{message.id[:_KEPT_OF_AN_ID]}:{StoredMessage.of(message).digest()}",
        metadata={**message.metadata, WIRE: kept},
    )
