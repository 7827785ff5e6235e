"""What a handler returns: the task's last message, and its result."""

from __future__ import annotations

from typing import Any

from holdfast.runtime.content import blocks_of
from holdfast.runtime.offload import load
from holdfast.runtime.stores import TaskStores
from holdfast.values.codec import plain
from holdfast.values.content import ChatMessage, text_of
from holdfast.values.tasks.records import TaskRecord

RETURNED = "what the handler returned"


def message_and_result(returned: Any) -> tuple[ChatMessage | None, Any]:
    """Return the message that ends a task, or ``None``, and the task's result.

    Text, a dict, a message and content blocks are a message. The result of a message and of blocks
    is their text.

    >>> message_and_result([1, 2])
    (None, [1, 2])
    """
    if isinstance(returned, ChatMessage):
        return returned, returned.text
    blocks = blocks_of(returned) if returned != [] else None
    if blocks is None:
        return None, plain(returned, field=RETURNED)
    if isinstance(returned, (str, dict)):
        return ChatMessage.assistant(blocks), plain(returned, field=RETURNED)
    return ChatMessage.assistant(blocks), text_of(blocks)


async def load_result(state: TaskStores, task: TaskRecord) -> Any:
    """Return the result of a task; a large one is loaded from the blob store.

    ``task.result`` is the same for a result below 256 KiB. ::

        done = await state.tasks.wait(task.id)
        pages = await holdfast.content.load_result(state, done)
    """
    return await load(state.blobs, task.result)
