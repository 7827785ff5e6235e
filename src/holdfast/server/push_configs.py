"""A2A's methods for push notification configs."""

from __future__ import annotations

import base64
import binascii
from abc import abstractmethod

from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import TaskNotFoundError

from holdfast.server.addresses import AddressGuard
from holdfast.server.answers import answers
from holdfast.server.caller import Call
from holdfast.server.key_watch import KeyWatch
from holdfast.server.limits import KeyLimits
from holdfast.server.metrics import Metrics
from holdfast.server.options import ServiceOptions
from holdfast.server.push_request import check_push, push_from_wire, push_to_wire
from holdfast.server.schema import MAX_PAGE, check_page_size
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id
from holdfast.values.tasks.records import TaskRecord


class PushConfigs:
    """The push configs of the caller's tasks. No response contains a secret.

    API keys with read scope get no config: a URL can be a secret, too.
    """

    guard: AddressGuard
    metrics: Metrics
    options: ServiceOptions
    streams: int
    limits: KeyLimits
    watch: KeyWatch

    @abstractmethod
    async def found(self, call: Call, task_id: str) -> TaskRecord:
        """Return a task of the caller."""

    @answers("CreateTaskPushNotificationConfig", writes=True)
    async def on_create_task_push_notification_config(
        self, params: a2a.TaskPushNotificationConfig, call: Call
    ) -> a2a.TaskPushNotificationConfig:
        """Store a config under its id, or under a new one."""
        task = await self.found(call, params.task_id)
        config = check_push(push_from_wire(params, id=params.id or new_id()), self.guard)
        await call.state.tasks.upsert_push_config(
            task.id, config, owner=call.owner, max_configs=self.options.push_configs
        )
        return push_to_wire(config, task_id=task.id)

    @answers("GetTaskPushNotificationConfig", writes=True)
    async def on_get_task_push_notification_config(
        self, params: a2a.GetTaskPushNotificationConfigRequest, call: Call
    ) -> a2a.TaskPushNotificationConfig:
        """Return one config."""
        config = await call.state.tasks.get_push_config(params.task_id, params.id, owner=call.owner)
        if config is None:
            raise TaskNotFoundError
        return push_to_wire(config, task_id=params.task_id)

    @answers("ListTaskPushNotificationConfigs", writes=True)
    async def on_list_task_push_notification_configs(
        self, params: a2a.ListTaskPushNotificationConfigsRequest, call: Call
    ) -> a2a.ListTaskPushNotificationConfigsResponse:
        """Return the configs of a task, ordered by id."""
        task = await self.found(call, params.task_id)
        after = _after(params.page_token)
        configs = [
            one
            for one in await call.state.tasks.list_push_configs(task.id, owner=call.owner)
            if one.id > after
        ]
        size = params.page_size or MAX_PAGE
        check_page_size(size)
        page = configs[:size]
        return a2a.ListTaskPushNotificationConfigsResponse(
            configs=[push_to_wire(one, task_id=task.id) for one in page],
            next_page_token=_token(page[-1].id) if len(configs) > size else "",
        )

    @answers("DeleteTaskPushNotificationConfig", writes=True)
    async def on_delete_task_push_notification_config(
        self, params: a2a.DeleteTaskPushNotificationConfigRequest, call: Call
    ) -> None:
        """Delete a config; no error if it does not exist."""
        task = await self.found(call, params.task_id)
        await call.state.tasks.delete_push_config(task.id, params.id, owner=call.owner)


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode("ascii")


def _after(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise InvalidInputError("page_token", "is not one that this listing returned") from None
