"""Queues: many tasks in one call, priorities, and limits that all workers keep together."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import check_attempts, encode_metadata
from holdfast.contracts.tasks.scope import LedgerCalls
from holdfast.spi.tasks.draft import Draft, check_run_after
from holdfast.spi.tasks.stored import StoredMessage, text_bytes
from holdfast.values.checks import (
    check_absent_id,
    check_list,
    check_unreserved,
)
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.tasks.limits import Limit, check_priority
from holdfast.values.tasks.new_task import MAX_BYTES_PER_CALL, MAX_TASKS_PER_CALL, NewTask
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskRecord

MAX_LIMITS = 1000
"""How many limits one claim takes."""


@runtime_checkable
class QueueLedger(Protocol):
    """Which tasks workers run first, and how many.

    A task has a priority from 0 to 9. ``submit(priority=5)`` puts it before all tasks of a lower
    one; tasks of the same priority run in the order they became due. ``claim(limits=…)`` keeps
    limits across all workers of a tenant that pass them: how many tasks run at once, and how many
    start in a period. A running task counts until its work ends or its lease is taken back, even if
    its worker dies.

    Promises:

    - submit_many stores all tasks and returns them in order
    - tasks of one submit_many run in the order given
    - submit_many with a bad task names its index and writes nothing
    - submit_many with a used submit key finds its task
    - submit_many with one submit key twice makes one task
    - submit_many with a submit key and other content names its index and writes nothing
    - submit_many is bounded in tasks and bytes
    - submit_many of nothing does nothing
    - concurrent submit_many with the same keys in another order make each task once
    - a task of a higher priority is claimed first
    - tasks of one priority are claimed in the order they became due
    - a priority waits until its task is due
    - a priority is part of what a submit key names
    - a priority outside 0 to 9 is refused
    - of one context the task of a higher priority is claimed first, and one at a time
    - a retry keeps priority and key
    - a task made of another keeps its priority and key
    - no more tasks of an agent are at work than its concurrency
    - no more tasks of a tenant are at work than its concurrency
    - no more tasks of a key are at work than its concurrency
    - tasks without a key have no limit per key
    - tasks of a full key do not hold up others
    - tasks of a full agent do not hold up others
    - 10 concurrent claims keep a concurrency together
    - whatever ends the work on a task gives its place back
    - the place of a dead worker comes back with its lease
    - no more tasks begin in any period than the rate
    - a rate counts tasks that have ended
    - a rate holds for each key by itself
    - 10 concurrent claims keep a rate together
    - limits of one tenant do not count the tasks of another
    - a limit that is no limit is refused
    """

    @abstractmethod
    async def submit_many(
        self, tasks: Sequence[NewTask], *, owner: str | None = None
    ) -> list[TaskRecord]:
        """Queue up to 1,000 tasks in one step, all or none. Returns them in the same order.

        Each is submitted as by ``submit``: a submit key that was used for the same content returns
        the existing task, also if the key is in the list twice. Their messages and metadata may
        have 16 MiB together. An error names the index of the task, as in ``tasks[3].agent``.

        ::

            pages = [NewTask("reader", ChatMessage.user(url), submit_key=url) for url in urls]
            tasks = await ledger.submit_many(pages)
        """
        ...


class QueueCalls(LedgerCalls, QueueLedger):
    """Implements ``QueueLedger``: checks the arguments, then calls the engine's storage."""

    async def submit_many(
        self, tasks: Sequence[NewTask], *, owner: str | None = None
    ) -> list[TaskRecord]:
        """Queue tasks in one step, all or none."""
        given = check_list("tasks", tasks)
        if len(given) > MAX_TASKS_PER_CALL:
            raise InvalidInputError(
                "tasks", f"has {len(given)} tasks, and at most {MAX_TASKS_PER_CALL} are allowed"
            )
        who = check_unreserved("owner", check_absent_id("owner", owner))
        drafts: list[Draft] = []
        size = 0
        for at, task in enumerate(given):
            drafts.append(_check_new(at, task, who))
            size += text_bytes(drafts[-1].message.payload) + text_bytes(drafts[-1].metadata)
            if size > MAX_BYTES_PER_CALL:
                raise InvalidInputError(
                    f"tasks[{at}]",
                    f"exceeds {MAX_BYTES_PER_CALL} bytes in one call: submit it in another call",
                )
        if not drafts:
            return []
        try:
            found = await self._storage.submit_many(drafts)
        except ConflictError as error:
            if error.kind != "submit_key":
                raise
            places = [at for at, one in enumerate(drafts) if one.submit_key == error.key]
            raise ConflictError(error.kind, error.key, f"tasks[{places[-1]}]: {error}") from None
        return [task.load() for task in found]


def _check_new(at: int, task: object, owner: str) -> Draft:
    if not isinstance(task, NewTask):
        raise InvalidInputError(f"tasks[{at}]", f"must be a NewTask, not {type(task).__name__}")
    fields = {one.name: getattr(task, one.name) for one in dataclasses.fields(task)}
    try:
        return check_draft(owner=owner, **fields)
    except InvalidInputError as error:
        problem = str(error).removeprefix(f"{error.field}: ")
        raise InvalidInputError(f"tasks[{at}].{error.field}", problem) from None


def check_draft(
    agent: Agent,
    message: ChatMessage,
    *,
    session_id: str | None = None,
    owner: str | None = None,
    metadata: dict[str, Any] | None = None,
    submit_key: str | None = None,
    max_attempts: int = MAX_ATTEMPTS,
    run_after: datetime | timedelta | None = None,
    priority: int = 0,
    key: str | None = None,
) -> Draft:
    """Check the arguments of a task to submit.

    >>> check_draft("writer", ChatMessage.user("hello"), priority=3).priority
    3
    """
    attempts = check_attempts(max_attempts)
    return Draft(
        AgentId.parse(agent),
        StoredMessage.of(message),
        check_unreserved("session_id", check_absent_id("session_id", session_id)),
        check_unreserved("owner", check_absent_id("owner", owner)),
        encode_metadata(metadata),
        check_unreserved("submit_key", check_absent_id("submit_key", submit_key)),
        attempts,
        check_run_after(run_after),
        priority=check_priority(priority),
        key=check_absent_id("key", key),
    )


def check_limits(limits: object) -> Sequence[Limit]:
    """Check the limits of a claim.

    >>> check_limits([Limit(concurrency=3)])[0].concurrency
    3
    """
    found: Sequence[Any] = check_list("limits", limits)
    if len(found) > MAX_LIMITS:
        raise InvalidInputError("limits", f"must be at most {MAX_LIMITS}")
    for one in found:
        if not isinstance(one, Limit):
            raise InvalidInputError("limits", f"must be Limit, not {type(one).__name__}")
    return list(found)
