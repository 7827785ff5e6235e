"""The ways a handler ends: a reply, a rejection, a failure without retry, a suspension."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.values.content import ChatMessage
from holdfast.values.errors import HoldfastError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import TaskRecord

REPLIED = "answered with a message"
"""Note on the last transition of a task whose handler returned ``task.reply()``."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of ``task.reply()``; a handler that returns it answers with a message, not a task.

    >>> Reply(ChatMessage.assistant("hello")).message.text
    'hello'
    """

    message: ChatMessage


def is_reply(task: TaskRecord) -> bool:
    """Return whether the handler of a task answered with ``task.reply()``.

    ::

        if is_reply(task):
            print(task.status_message.text)
    """
    completed = task.state is TaskState.COMPLETED and task.status_message is not None
    return completed and task.note == REPLIED


class TaskRejectedError(HoldfastError):
    """Raised by a handler that refuses the task, which then ends as ``rejected``.

    >>> TaskRejectedError("no such city").reason
    'no such city'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TaskFailedError(HoldfastError):
    """Raised by a handler to fail the task without a retry; it ends as ``failed``.

    >>> TaskFailedError("the page is gone").reason
    'the page is gone'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_text(value: object) -> str:
    """Convert any reason that a handler gave to text that can be stored.

    >>> reason_text(ValueError("no"))
    'no'
    """
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 - a handler's exception may fail at this as well
        text = "its text cannot be had: str() of it fails"
    return text.encode("utf-8", "backslashreplace").decode()


class ChildTaskError(TaskFailedError):
    """Raised by ``task.call`` and ``task.wait`` if the child did not complete.

    A child's end is final, so that a retry cannot help: a handler that does not catch it fails its
    own task, without a retry.

    >>> error = ChildTaskError("t2", "writer", TaskState.FAILED, "the page is gone")
    >>> str(error)
    "the child 't2' of the agent writer is failed: the page is gone"
    """

    def __init__(self, task_id: str, agent: str, state: TaskState, why: str) -> None:
        because = f": {why}" if why else ""
        super().__init__(f"the child {task_id!r} of the agent {agent} is {state}{because}")
        self.task_id = task_id
        self.agent = agent
        self.state = state
        """How the child ended: ``failed``, ``canceled`` or ``rejected``."""

        self.why = why
        """The note of the child's last change of state."""


class Parked(BaseException):
    """Raised inside an argument of ``task.gather`` that must wait for these children.

    ``gather`` then suspends the task once, for the children of all its arguments.
    """

    def __init__(self, children: list[str]) -> None:
        super().__init__(children)
        self.children = children


class Suspended(BaseException):
    """Ends a run of a handler: the task has been released and waits for an answer, time or resume.

    Not an ``Exception``, so that a handler's ``except Exception`` does not catch it.
    """

    def __init__(self, state: TaskState) -> None:
        super().__init__(state)
        self.state = state
        """The task's new state; ``canceled`` if a client had asked for that before."""
