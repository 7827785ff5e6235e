"""The lifecycle of a task: its states, and the table of allowed transitions between them.

Every engine checks this table before it changes a task's state; a database checks it again. The
table does not apply to adopted tasks, which another system runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.values.errors import IllegalTransitionError, InvalidInputError


class TaskState(StrEnum):
    """The state of a task. The names are those of A2A; ``paused`` is Holdfast's.

    >>> TaskState("input-required") is TaskState.INPUT_REQUIRED
    True
    """

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


class Actor(StrEnum):
    """Who may make a transition: a client, the worker that holds the lease, or recovery.

    >>> Actor.RECOVERY.value
    'recovery'
    """

    CLIENT = "client"
    WORKER = "worker"
    RECOVERY = "recovery"


TERMINAL = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
)
"""The final states: no transition leaves them."""

WAITING = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
"""The states in which a task waits for a client's answer."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One allowed transition: from a state (``None`` at submit), to a state, by whom, and when.

    >>> EDGES[0].to_state.value, EDGES[0].when
    ('submitted', 'a client submits it')
    """

    from_state: TaskState | None
    to_state: TaskState
    actors: frozenset[Actor]
    when: str


def _edge(from_state: TaskState | None, to_state: TaskState, when: str, *actors: Actor) -> Edge:
    return Edge(from_state, to_state, frozenset(actors), when)


_S = TaskState
_CLIENT, _WORKER, _RECOVERY = Actor.CLIENT, Actor.WORKER, Actor.RECOVERY

EDGES: tuple[Edge, ...] = (
    _edge(None, _S.SUBMITTED, "a client submits it", _CLIENT),
    _edge(_S.SUBMITTED, _S.WORKING, "a worker claims it", _WORKER),
    _edge(_S.SUBMITTED, _S.PAUSED, "a client pauses it", _CLIENT),
    _edge(_S.SUBMITTED, _S.CANCELED, "a client cancels it", _CLIENT),
    _edge(
        _S.WORKING,
        _S.SUBMITTED,
        "the worker sleeps, tries again later or hands it back; or its lease expired",
        _WORKER,
        _RECOVERY,
    ),
    _edge(_S.WORKING, _S.INPUT_REQUIRED, "the handler asks a question", _WORKER),
    _edge(_S.WORKING, _S.AUTH_REQUIRED, "the handler asks for a credential", _WORKER),
    _edge(
        _S.WORKING,
        _S.PAUSED,
        "the worker stops for a pause; or its lease expired with a pause requested",
        _WORKER,
        _RECOVERY,
    ),
    _edge(_S.WORKING, _S.COMPLETED, "the handler is done", _WORKER),
    _edge(
        _S.WORKING,
        _S.FAILED,
        "the handler gives up; or the last attempt ended without progress",
        _WORKER,
        _RECOVERY,
    ),
    _edge(
        _S.WORKING,
        _S.CANCELED,
        "the worker confirms a cancel; or its lease expired with a cancel requested",
        _WORKER,
        _RECOVERY,
    ),
    _edge(_S.WORKING, _S.REJECTED, "the handler refuses the work", _WORKER),
    _edge(_S.INPUT_REQUIRED, _S.SUBMITTED, "a client answers", _CLIENT),
    _edge(_S.INPUT_REQUIRED, _S.PAUSED, "a client answers, with a pause requested", _CLIENT),
    _edge(_S.INPUT_REQUIRED, _S.CANCELED, "a client cancels it", _CLIENT),
    _edge(_S.AUTH_REQUIRED, _S.SUBMITTED, "a client answers", _CLIENT),
    _edge(_S.AUTH_REQUIRED, _S.PAUSED, "a client answers, with a pause requested", _CLIENT),
    _edge(_S.AUTH_REQUIRED, _S.CANCELED, "a client cancels it", _CLIENT),
    _edge(_S.PAUSED, _S.SUBMITTED, "a client resumes it", _CLIENT),
    _edge(_S.PAUSED, _S.CANCELED, "a client cancels it", _CLIENT),
)
"""All allowed transitions."""

_NAMES = frozenset(state.value for state in TaskState)
_ACTORS = {(edge.from_state, edge.to_state): edge.actors for edge in EDGES}


def is_legal(from_state: TaskState | None, to_state: TaskState, by: Actor) -> bool:
    """Return whether this actor may make this transition.

    >>> is_legal(TaskState.SUBMITTED, TaskState.WORKING, Actor.WORKER)
    True
    >>> is_legal(TaskState.COMPLETED, TaskState.WORKING, Actor.WORKER)
    False
    """
    return by in _ACTORS.get((from_state, to_state), ())


def check_edge(task_id: str, from_state: TaskState | None, to_state: TaskState, by: Actor) -> None:
    """Raise ``IllegalTransitionError`` for a transition that is not in the table.

    >>> check_edge("t1", TaskState.PAUSED, TaskState.SUBMITTED, Actor.CLIENT)
    """
    if not is_legal(from_state, to_state, by):
        raise IllegalTransitionError(
            "task", task_id, from_state=from_state or "nothing", to_state=to_state
        )


def check_state(field: str, value: object) -> TaskState:
    """Check a state, given as the enum or its name.

    >>> check_state("to", "completed")
    <TaskState.COMPLETED: 'completed'>
    """
    if isinstance(value, str) and value in _NAMES:
        return TaskState(value)
    raise InvalidInputError(field, f"must be one of {', '.join(TaskState)}")
