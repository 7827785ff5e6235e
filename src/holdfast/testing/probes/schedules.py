"""Where hostile input can enter a ``ScheduleStore``."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.schedules import ScheduleStore
from holdfast.testing.probes.probe import NO_ECHO, Probe, absent
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import NotFoundError

CONTRACT = "schedules"
NIGHTLY = "0 3 * * *"


async def _made(store: ScheduleStore, **given: Any) -> Any:
    content: dict[str, Any] = {"schedule_id": "s1", "agent": "writer", "message": "hello", **given}
    made = await store.create(cron=NIGHTLY, **content)
    found = await store.get(made.id, owner=made.owner)
    await store.delete(made.id, owner=made.owner)
    return found


async def _id(store: ScheduleStore, value: Any) -> Any:
    return (await _made(store, schedule_id=value)).id


async def _owner(store: ScheduleStore, value: Any) -> Any:
    return (await _made(store, owner=value)).owner


async def _context(store: ScheduleStore, value: Any) -> Any:
    return (await _made(store, session_id=value)).session_id


async def _text(store: ScheduleStore, value: Any) -> Any:
    return (await _made(store, message=ChatMessage.user([TextBlock(value)]))).message.text


async def _metadata(store: ScheduleStore, value: Any) -> Any:
    return (await _made(store, metadata=value)).metadata


async def _get(store: ScheduleStore, value: Any) -> Any:
    assert await store.get(value) is None
    return NO_ECHO


async def _delete(store: ScheduleStore, value: Any) -> Any:
    assert await store.delete(value) is False
    return NO_ECHO


def _not_there(method: str) -> Any:
    async def use(store: ScheduleStore, value: Any) -> Any:
        try:
            await getattr(store, method)(value)
        except NotFoundError:
            return NO_ECHO
        raise AssertionError("there is no such schedule")

    return use


async def _list(store: ScheduleStore, value: Any) -> Any:
    assert await store.list(owner=value) == []
    return NO_ECHO


PROBES = [
    Probe("create.schedule_id", "id", _id),
    Probe("create.owner", "absent_id", _owner, expect=absent),
    Probe("create.session_id", "absent_id", _context, expect=absent),
    Probe("create.message", "text", _text),
    Probe("create.metadata", "object", _metadata),
    Probe("get.schedule_id", "id", _get),
    Probe("delete.schedule_id", "id", _delete),
    Probe("pause.schedule_id", "id", _not_there("pause")),
    Probe("resume.schedule_id", "id", _not_there("resume")),
    Probe("next_runs.schedule_id", "id", _not_there("next_runs")),
    Probe("list.owner", "absent_id", _list),
]
