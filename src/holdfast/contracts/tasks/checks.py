"""Checks of task arguments, with the same errors on every ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.spi.tasks.stored import text_bytes
from holdfast.values.checks import (
    check_count,
    check_id,
    check_list,
    check_optional_id,
    check_text,
)
from holdfast.values.errors import IllegalTransitionError, InvalidInputError, LeaseLostError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import WAITING, TaskState
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import OutboxEntry
from holdfast.values.tasks.records import Lease
from holdfast.values.tasks.trace import encode_untraced

MAX_NOTE_BYTES = 1 << 20
"""The largest note of a request, and the largest text of feedback."""

MAX_METADATA_BYTES = 1 << 20
"""The largest metadata of a task or of feedback, as JSON text."""


def check_note(field: str, note: object) -> str:
    """Check a note that a client gives.

    >>> check_note("note", "not needed any more")
    'not needed any more'
    """
    text = check_text(field, note)
    if text_bytes(text) > MAX_NOTE_BYTES:
        raise InvalidInputError(
            field, f"must be at most {MAX_NOTE_BYTES} bytes, not {text_bytes(text)}"
        )
    return text


def encode_metadata(metadata: object) -> str:
    """Check the metadata that a client gives, and return it as JSON text; ``None`` is empty.

    >>> encode_metadata({"channel": "mail"})
    '{"channel":"mail"}'
    """
    text = encode_untraced(metadata)
    if text_bytes(text) > MAX_METADATA_BYTES:
        raise InvalidInputError(
            "metadata",
            f"must be at most {MAX_METADATA_BYTES} bytes as JSON, not {text_bytes(text)}: "
            "store it as a blob, and put its reference here",
        )
    return text


def asks_nothing(task_id: str, state: str) -> IllegalTransitionError:
    """Return the error for an answer to a task that does not wait for one.

    >>> str(asks_nothing("t1", "working"))
    "task 't1' asks nothing, it is working: answer when it is input-required or auth-required"
    """
    return IllegalTransitionError(
        "task",
        task_id,
        from_state=state,
        to_state=TaskState.SUBMITTED,
        message=f"task {task_id!r} asks nothing, it is {state}: "
        "answer when it is input-required or auth-required",
    )


def check_owner(owner: object) -> str | None:
    """Check an owner: ``""`` for tasks without an owner, ``None`` for every owner.

    >>> check_owner(ANY_OWNER) is None
    True
    """
    return None if owner is None or owner is ANY_OWNER else check_optional_id("owner", owner)


def check_agents(agents: object) -> set[AgentId] | None:
    """Check the agents whose tasks a worker claims; ``None`` means all.

    >>> sorted(map(str, check_agents(["writer", "team/reader"])))
    ['team/reader', 'writer']
    """
    if agents is None:
        return None
    given: Sequence[Any] = check_list("agents", agents)
    return {AgentId.parse(one) for one in given}


def check_lease(lease: object) -> Lease:
    """Check a lease: it names a task and a fence.

    Raises ``LeaseLostError`` for fence 0, which no claim has.

    >>> from datetime import datetime
    >>> check_lease(Lease("t1", 1, "w1", datetime(2030, 1, 1))).fence
    1
    """
    checked = _check_fields(lease)
    if checked.fence == 0:
        raise LeaseLostError("task", checked.task_id)
    return checked


def _check_fields(lease: object) -> Lease:
    if not isinstance(lease, Lease):
        raise InvalidInputError("lease", f"must be a Lease, not {type(lease).__name__}")
    check_id("lease.task_id", lease.task_id)
    check_count("lease.fence", lease.fence)
    return lease


def check_leases(leases: object) -> list[Lease]:
    """Check leases: no two may be on the same task.

    >>> check_leases([])
    []
    """
    found = [_check_fields(lease) for lease in check_list("leases", leases)]
    if len({lease.task_id for lease in found}) < len(found):
        raise InvalidInputError("leases", "must not name a task twice")
    return found


def check_step(key: object, *, field: str = "step") -> StepKey:
    """Check the key of a step.

    >>> str(check_step(StepKey("fetch")))
    'step:fetch:1'
    """
    if not isinstance(key, StepKey):
        raise InvalidInputError(field, f"must be a StepKey, not {type(key).__name__}")
    return key


def check_attempts(max_attempts: object) -> int:
    """Check ``max_attempts``: how many claims without progress a task may have.

    >>> check_attempts(5)
    5
    """
    attempts = check_count("max_attempts", max_attempts)
    if attempts == 0:
        raise InvalidInputError("max_attempts", "must be 1 or more")
    return attempts


def check_extras(wanted: TaskState, *, run_after: object, progress: bool, ask: object) -> None:
    """Raise an error for arguments that do not fit the state which a worker reports.

    >>> check_extras(TaskState.COMPLETED, run_after=None, progress=False, ask=None)
    """
    if wanted is not TaskState.SUBMITTED and run_after is not None:
        raise InvalidInputError("run_after", "can only be combined with the state submitted")
    if wanted is not TaskState.SUBMITTED and progress:
        raise InvalidInputError("progress", "can only be combined with the state submitted")
    if ask is not None:
        check_step(ask, field="ask")
        if wanted not in WAITING:
            raise InvalidInputError(
                "ask", "can only be combined with input-required or auth-required"
            )


def message_named(result: object) -> str:
    """Return the id of the message that a step's result names, such as a question, or ``""``.

    >>> message_named({"message_id": "m1"}), message_named([1])
    ('m1', '')
    """
    named = result.get("message_id") if isinstance(result, dict) else None
    try:
        return check_id("message_id", named)
    except InvalidInputError:
        return ""


def check_entry(entry: object) -> OutboxEntry:
    """Check an entry that ``claim_outbox`` or ``list_outbox`` returned.

    >>> check_entry("e1")
    Traceback (most recent call last):
    ...
    holdfast.values.errors.InvalidInputError: entry: must be an OutboxEntry, not str
    """
    if not isinstance(entry, OutboxEntry):
        raise InvalidInputError("entry", f"must be an OutboxEntry, not {type(entry).__name__}")
    check_id("entry.event.task_id", entry.event.task_id)
    check_count("entry.event.seq", entry.event.seq)
    check_count("entry.attempts", entry.attempts)
    return entry
