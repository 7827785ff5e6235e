"""How a handler ends other than by returning."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.values.content import ChatMessage
from holdfast.values.errors import HoldfastError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import TaskRecord

REPLIED = "answered with a message"
"""The note of the last transition of a task whose handler returned ``task.reply()``."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What ``task.reply()`` makes; a handler that returns it answers with a message, not a task.

    >>> Reply(ChatMessage.assistant("hello")).message.text
    'hello'
    """

    message: ChatMessage


def is_reply(task: TaskRecord) -> bool:
    """Whether the handler of a task answered with ``task.reply()``.

    ::

        if is_reply(task):
            print(task.status_message.text)
    """
    completed = task.state is TaskState.COMPLETED and task.status_message is not None
    return completed and task.note == REPLIED


class TaskRejectedError(HoldfastError):
    """Raised by a handler that will not do this work: the task ends as ``rejected``.

    >>> TaskRejectedError("no such city").reason
    'no such city'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TaskFailedError(HoldfastError):
    """Raised by a handler for which another attempt is no use: the task ends as ``failed``.

    >>> TaskFailedError("the page is gone").reason
    'the page is gone'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Suspended(BaseException):
    """The task has left this worker: it waits for an answer, a moment or a resume.

    Not an ``Exception``, so that a handler's ``except Exception`` lets it pass.
    """

    def __init__(self, state: TaskState) -> None:
        super().__init__(state)
        self.state = state
        """Where the task went; ``canceled`` where a client had wanted that first."""
