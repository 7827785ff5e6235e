"""The conflict errors of task engines, with the same texts on every engine."""

from __future__ import annotations

from holdfast.values.errors import ConflictError
from holdfast.values.tasks.events import StepKey


def other_body(kind: str, key: str) -> ConflictError:
    """Return the error for a message or feedback whose id is stored with another body.

    >>> str(other_body("message", "m1"))
    "message 'm1' is there with another body"
    """
    return ConflictError(kind, key, f"{kind} {key!r} is there with another body")


def other_content(submit_key: str) -> ConflictError:
    """Return the error for a submit key that was used for a task with other content.

    >>> str(other_content("k1"))
    "submit key 'k1' was used with other content: use a new key"
    """
    text = f"submit key {submit_key!r} was used with other content: use a new key"
    return ConflictError("submit_key", submit_key, text)


def adopted(task_id: str) -> ConflictError:
    """Return the error for a request to an adopted task, which no worker runs.

    >>> str(adopted("t1"))
    "task 't1' is run by somebody else: record what they report"
    """
    text = f"task {task_id!r} is run by somebody else: record what they report"
    return ConflictError("task", task_id, text)


def not_adopted(task_id: str) -> ConflictError:
    """Return the error for a report on a task that workers run.

    >>> str(not_adopted("t1"))
    "task 't1' is run by workers: only an adopted task takes reports"
    """
    text = f"task {task_id!r} is run by workers: only an adopted task takes reports"
    return ConflictError("task", task_id, text)


def last_chunk_written(artifact_id: str) -> ConflictError:
    """Return the error for a chunk of an artifact that this attempt has finished.

    >>> str(last_chunk_written("a1"))
    "artifact 'a1' has its last chunk: begin it anew to change it"
    """
    text = f"artifact {artifact_id!r} has its last chunk: begin it anew to change it"
    return ConflictError("artifact", artifact_id, text)


def asked_to_cancel(task_id: str) -> ConflictError:
    """Return the error for a child of a task that a client asked to cancel.

    >>> str(asked_to_cancel("t1"))
    "task 't1' was asked to cancel: it submits no more tasks"
    """
    text = f"task {task_id!r} was asked to cancel: it submits no more tasks"
    return ConflictError("task", task_id, text)


def has_ended(task_id: str) -> ConflictError:
    """Return the error for a message to a task that has ended.

    >>> str(has_ended("t1"))
    "task 't1' has ended: it receives no more messages"
    """
    text = f"task {task_id!r} has ended: it receives no more messages"
    return ConflictError("task", task_id, text)


def inbox_full(task_id: str, limit: int) -> ConflictError:
    """Return the error for a message to a task with too many unreceived messages.

    >>> str(inbox_full("t1", 1000))
    "task 't1' has 1000 messages that it has not received: send again later"
    """
    text = f"task {task_id!r} has {limit} messages that it has not received: send again later"
    return ConflictError("task", task_id, text)


def _step(key: StepKey, why: str) -> ConflictError:
    return ConflictError("step", str(key), f"{key} {why}")


def other_arguments(key: StepKey) -> ConflictError:
    """Return the error for a step that is stored with other arguments.

    >>> str(other_arguments(StepKey("fetch")))
    'step:fetch:1 is stored for other arguments: give it another name'
    """
    return _step(key, "is stored for other arguments: give it another name")


def answered(key: StepKey) -> ConflictError:
    """Return the error for a question that is already answered.

    >>> str(answered(StepKey("q", kind="ask")))
    'ask:q:1 was answered: its answer is a step'
    """
    return _step(key, "was answered: its answer is a step")


def no_message(key: StepKey) -> ConflictError:
    """Return the error for a message whose stored step names no message.

    >>> str(no_message(StepKey("fetch")))
    'step:fetch:1 is stored, and not as a message'
    """
    return _step(key, "is stored, and not as a message")
