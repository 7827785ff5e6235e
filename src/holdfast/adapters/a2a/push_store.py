"""``HoldfastPushStore``: the SDK's ``PushNotificationConfigStore``."""

from __future__ import annotations

import json

from a2a.server.context import ServerCallContext
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.server.tasks.push_notification_config_store import (
    PushNotificationConfigStore,
    normalize_push_notification_config,
)
from a2a.types import a2a_pb2 as pb

from holdfast.adapters.a2a.messages import parsed, plain
from holdfast.adapters.keys import key_of
from holdfast.blocking import Portal
from holdfast.wiring.state import State


class HoldfastPushStore(PushNotificationConfigStore):
    """The push configs of a task in one state of ``short_term``, by owner and id.

    A config may be stored before its task, as the SDK does. Callers see their own configs;
    ``get_info_for_dispatch``, which the SDK's sender calls, returns those of all owners. Any thread
    and event loop may use it. ::

        store = HoldfastPushStore(state)
        sender = BasePushNotificationSender(client, store)
    """

    def __init__(
        self, state: State | Portal, *, owner_resolver: OwnerResolver = resolve_user_scope
    ) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._resolver = owner_resolver

    async def set_info(
        self,
        task_id: str,
        notification_config: pb.TaskPushNotificationConfig,
        context: ServerCallContext,
    ) -> pb.TaskPushNotificationConfig:
        """Store a config of the caller. It replaces the caller's config with the same id."""
        stored = normalize_push_notification_config(task_id, notification_config)
        key = json.dumps([self._resolver(context), stored.id])
        await self._portal.arun(self._set(task_id, key, stored))
        return stored

    async def get_info(
        self, task_id: str, context: ServerCallContext
    ) -> list[pb.TaskPushNotificationConfig]:
        """Return the caller's configs of a task."""
        found = await self._portal.arun(self._get(task_id))
        return [config for owner, config in found if owner == self._resolver(context)]

    async def get_info_for_dispatch(self, task_id: str) -> list[pb.TaskPushNotificationConfig]:
        """Return all owners' configs of a task, for the sender."""
        return [config for _, config in await self._portal.arun(self._get(task_id))]

    async def delete_info(
        self, task_id: str, context: ServerCallContext, config_id: str | None = None
    ) -> None:
        """Delete a config of the caller; without ``config_id``, all of the caller's configs."""
        owner = self._resolver(context)
        await self._portal.arun(self._delete(task_id, owner, config_id))

    async def _set(self, task_id: str, key: str, config: pb.TaskPushNotificationConfig) -> None:
        await self._portal.state.short_term.update_state(_session(task_id), {key: plain(config)})

    async def _get(self, task_id: str) -> list[tuple[str, pb.TaskPushNotificationConfig]]:
        found = await self._portal.state.short_term.get_state(_session(task_id))
        return [
            (json.loads(key)[0], parsed(kept, pb.TaskPushNotificationConfig()))
            for key, kept in found.items()
        ]

    async def _delete(self, task_id: str, owner: str, config_id: str | None) -> None:
        short_term, session = self._portal.state.short_term, _session(task_id)
        keys = [json.dumps([owner, config_id])]
        if config_id is None:
            found = await short_term.get_state(session)
            keys = [key for key in found if json.loads(key)[0] == owner]
        if keys:
            await short_term.update_state(session, {}, delete_keys=keys)


def _session(task_id: str) -> str:
    return key_of("a2a", "push", task_id)
