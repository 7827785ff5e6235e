"""The filters of task listings and of operations on many tasks."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from holdfast.contracts.tasks.checks import check_owner
from holdfast.spi.tasks.clients import TaskFilter
from holdfast.values.checks import check_id, check_text, check_time
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.lifecycle import TaskState, check_state

TaskOrder: TypeAlias = Literal["newest", "oldest"]
"""The order of a listing, by the last change of state."""

MAX_TEXT_CHARACTERS = 1000


class TaskWhere(TypedDict, total=False):
    """The filters of a listing, for operations on many tasks."""

    session_id: str | None
    states: Collection[TaskState | str] | None
    agent: Agent | None
    updated_after: datetime | None
    updated_before: datetime | None
    id_prefix: str | None
    worker: str | None
    text: str | None


@renamed(context_id="session_id")
def check_filter(
    owner: object,
    *,
    session_id: str | None = None,
    states: Collection[TaskState | str] | None = None,
    agent: Agent | None = None,
    updated_after: datetime | None = None,
    updated_before: datetime | None = None,
    id_prefix: str | None = None,
    worker: str | None = None,
    text: str | None = None,
) -> TaskFilter:
    """Check the filters of a listing; ``None`` means no condition.

    >>> check_filter("ana", agent="writer").owner
    'ana'
    """
    return TaskFilter(
        check_owner(owner),
        None if session_id is None else check_id("session_id", session_id),
        None if agent is None else AgentId.parse(agent),
        None if updated_after is None else check_time("updated_after", updated_after),
        None if states is None else _check_states(states),
        None if updated_before is None else check_time("updated_before", updated_before),
        None if id_prefix is None else check_id("id_prefix", id_prefix),
        None if worker is None else check_id("worker", worker),
        None if text is None else _check_part(text),
    )


def _check_states(states: object) -> frozenset[TaskState]:
    if isinstance(states, str) or not isinstance(states, Collection):
        raise InvalidInputError("states", f"must be a list, not {type(states).__name__}")
    return frozenset(check_state("states", state) for state in states)


def _check_part(value: object) -> str:
    text = check_text("text", value)
    if not 0 < len(text) <= MAX_TEXT_CHARACTERS:
        raise InvalidInputError("text", f"must have 1 to {MAX_TEXT_CHARACTERS} characters")
    return text
