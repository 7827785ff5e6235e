"""What all calls of the ledger share: the engine's storage, and the checked keys."""

from __future__ import annotations

from holdfast.contracts.front import Layered
from holdfast.contracts.tasks.checks import check_owner
from holdfast.spi.tasks.ledger import TaskStorage
from holdfast.spi.tasks.records import ContextKey, TaskKey
from holdfast.values.checks import check_absent_id, check_id

MOST = (1 << 63) - 1
"""The largest number that is passed to an engine."""


class LedgerCalls(Layered):
    """Base class of the ledger's calls, with the engine's storage."""

    def __init__(self, storage: TaskStorage) -> None:
        self._storage = storage


def task_key(task_id: object, owner: object) -> TaskKey:
    """Return the checked key of a task for an owner.

    >>> task_key("t1", "ana")
    TaskKey(task_id='t1', owner='ana')
    """
    return TaskKey(check_id("task_id", task_id), check_owner(owner))


def context_key(session_id: object, owner: object) -> ContextKey:
    """Return the checked key of an owner's context.

    >>> context_key("c1", "ana")
    ContextKey(owner='ana', session_id='c1')
    """
    return ContextKey(check_absent_id("owner", owner), check_id("session_id", session_id))
