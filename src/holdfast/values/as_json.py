"""Records as JSON for programs: names as in Python, times as ISO 8601, content by the codec."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from enum import StrEnum
from typing import Any, get_args

from holdfast.values.codec import block_to_json, message_to_payload
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.identity import AgentId
from holdfast.values.tasks.events import StepKey, TaskEvent

_BLOCKS = get_args(ContentBlock)


def jsonable(value: Any) -> Any:
    """Convert a record, or any value inside one, to plain JSON values.

    >>> jsonable({"step": StepKey("fetch"), "at": datetime(2030, 1, 1)})
    {'step': 'step:fetch:1', 'at': '2030-01-01T00:00:00'}
    """
    match value:
        case datetime():
            return value.isoformat()
        case StrEnum() | AgentId() | StepKey():
            return str(value)
        case TaskEvent():
            return _event(value)
        case ChatMessage():
            return {
                "id": value.id,
                "created_at": value.created_at.isoformat(),
                "text": value.text,
                **message_to_payload(value),
            }
        case dict():
            return {name: jsonable(one) for name, one in value.items()}
        case list() | tuple():
            return [jsonable(one) for one in value]
    if isinstance(value, _BLOCKS):
        return block_to_json(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        slots = [slot.name for slot in dataclasses.fields(value)]
        return {name: jsonable(getattr(value, name)) for name in slots}
    return value


def _event(event: TaskEvent) -> dict[str, Any]:
    return {
        "task_id": event.task_id,
        "seq": event.seq,
        "at": event.at.isoformat(),
        "by": str(event.by),
        "by_name": event.by_name,
        "fence": event.fence,
        "kind": event.kind,
        "body": jsonable(event.body),
    }
