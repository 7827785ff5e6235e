"""The timeline of a task, live and afterwards, and feedback on the task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import check_note, encode_metadata
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.records import Extent
from holdfast.spi.tasks.stored import StoredFeedback
from holdfast.values.checks import (
    check_absent_id,
    check_count,
    check_optional_count,
)
from holdfast.values.codec import encode_json
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TERMINAL
from holdfast.values.owners import Owner
from holdfast.values.tasks.events import TaskEvent
from holdfast.values.tasks.records import Feedback, TaskRecord


@runtime_checkable
class AuditLedger(Protocol):
    """One ordered timeline for each task: transitions, requests, messages, steps, artifacts.

    The timeline's ``seq`` runs from 1 without a gap; a task's ``version`` is the last ``seq``. So a
    snapshot and ``follow(after_seq=snapshot.version)`` together miss nothing and repeat nothing, on
    any instance. Feedback is about the task, not a part of it, and is not in the timeline.

    Promises:

    - the timeline has every transition, request, message, step and artifact chunk in order
    - the timeline runs from one without a gap and ends at the task's version
    - every change of state is logged with who made it, fence, attempt and note
    - the numbers of the log run from one without a gap
    - the message of a transition comes right before it
    - events after a cursor are those above it
    - a limit of zero gives no events
    - at most limit events are given, the oldest first
    - max_bytes gives the next events that fit, and always one
    - the timeline of an unknown task is empty
    - another owner's timeline is not found
    - one tenant never sees another's timeline
    - follow gives what happened and then what happens, and ends with the task
    - follow from a cursor repeats nothing and misses nothing
    - every follower sees the same order
    - follow of an ended task ends at once
    - follow of an unknown task is not found
    - a follower that leaves disturbs nobody
    - replay of the whole timeline is the task as it is
    - replay up to an event is the task as it was then
    - replay before the first event is none
    - replay gives the last messages and artifacts only on request
    - replay agrees with the timeline at every event
    - feedback on a task comes back in order
    - feedback can be given after the task has ended and does not change it
    - the same feedback id twice is taken once
    - the same feedback id with another body is a conflict
    - feedback on an unknown task is not found
    - another owner's feedback is not found
    - the timeline is still there after a reopen
    - an event that a store returns is the caller's to mutate
    """

    @abstractmethod
    async def events(
        self,
        task_id: str,
        *,
        after_seq: int = 0,
        limit: int | None = None,
        owner: Owner = None,
        max_bytes: int | None = None,
    ) -> list[TaskEvent]:
        """Return the events of a task after ``after_seq``; ``[]`` for an unknown task.

        ``max_bytes`` limits the size of the events as JSON text; the first one is always returned.

        ::

            for event in await ledger.events(task.id):
                print(event.at, event.kind)
        """
        ...

    @abstractmethod
    def follow(
        self, task_id: str, *, after_seq: int = 0, owner: Owner = None
    ) -> AsyncIterator[TaskEvent]:
        """Yield the events of a task after ``after_seq``, then each new one, until the task ends.

        The first iteration raises ``NotFoundError`` if there is no such task. It also ends when the
        task is deleted with its context.

        ::

            async for event in ledger.follow(task.id, after_seq=last_seen):
                await stream.send(event)
        """
        ...

    @abstractmethod
    async def replay(
        self,
        task_id: str,
        at_seq: int,
        *,
        owner: Owner = None,
        messages_limit: int | None = None,
        artifacts: bool = True,
    ) -> TaskRecord | None:
        """Return the task as it was after the event ``at_seq``, with messages and artifacts.

        It has the last ``messages_limit`` messages (default: all). The cost depends on what is
        returned, not on how many events came before. Returns ``None`` if there is no such task, or
        if ``at_seq`` is 0.

        ::

            before = await ledger.replay(task.id, event.seq - 1, messages_limit=10)
        """
        ...

    @abstractmethod
    async def append_feedback(
        self,
        task_id: str,
        text: str,
        *,
        rating: int | None = None,
        metadata: dict[str, Any] | None = None,
        feedback_id: str | None = None,
        owner: Owner = None,
    ) -> Feedback:
        """Store feedback on a task, whatever its state.

        A ``feedback_id`` makes it idempotent: a retry has no further effect.

        ::

            await ledger.append_feedback(task.id, "the second page is wrong", rating=2)
        """
        ...

    @abstractmethod
    async def list_feedback(self, task_id: str, *, owner: Owner = None) -> list[Feedback]:
        """Return the feedback on a task, in the order it was given.

        ::

            opinions = await ledger.list_feedback(task.id)
        """
        ...


class AuditCalls(LedgerCalls, AuditLedger):
    """Implements ``AuditLedger``: checks the arguments, then calls the engine's storage."""

    @renamed(after="after_seq")
    async def events(
        self,
        task_id: str,
        *,
        after_seq: int = 0,
        limit: int | None = None,
        owner: Owner = None,
        max_bytes: int | None = None,
    ) -> list[TaskEvent]:
        """Return the events of a task after ``after_seq``; ``[]`` for an unknown task."""
        found = await self._storage.events(
            task_key(task_id, owner),
            check_count("after_seq", after_seq),
            check_optional_count("limit", limit),
            check_optional_count("max_bytes", max_bytes),
        )
        return [event.load(task_id) for event in found]

    @renamed(after="after_seq")
    async def follow(
        self, task_id: str, *, after_seq: int = 0, owner: Owner = None
    ) -> AsyncIterator[TaskEvent]:
        """Yield the events of a task after ``after_seq``, then new ones, until the task ends."""
        seen, key = check_count("after_seq", after_seq), task_key(task_id, owner)
        found = await self._storage.next_events(key, seen)
        if found is None:
            raise NotFoundError("task", task_id)
        with self._storage.following(task_id) as followed:
            while found is not None:
                for event in found.events:
                    yield event.load(task_id)
                    seen = event.seq
                # ``found.state`` belongs to ``found.version``, which may be ahead of the events
                # read with it.
                if seen >= found.version:
                    if found.state in TERMINAL:
                        return
                    await followed.wait(found=bool(found.events))
                found = await self._storage.next_events(key, seen)

    @renamed(history_length="messages_limit")
    async def replay(
        self,
        task_id: str,
        at_seq: int,
        *,
        owner: Owner = None,
        messages_limit: int | None = None,
        artifacts: bool = True,
    ) -> TaskRecord | None:
        """Return the task as it was after the event ``at_seq``, with messages and artifacts."""
        extent = Extent(check_optional_count("messages_limit", messages_limit), bool(artifacts))
        until = check_count("at_seq", at_seq)
        return await self._storage.replay(task_key(task_id, owner), until, extent)

    async def append_feedback(
        self,
        task_id: str,
        text: str,
        *,
        rating: int | None = None,
        metadata: dict[str, Any] | None = None,
        feedback_id: str | None = None,
        owner: Owner = None,
    ) -> Feedback:
        """Store feedback on a task, whatever its state."""
        feedback = StoredFeedback(
            check_absent_id("feedback_id", feedback_id) or new_id(),
            check_note("text", text),
            _check_rating(rating),
            encode_metadata(metadata),
            datetime.now(UTC),
        )
        key = task_key(task_id, owner)
        return (await self._storage.append_feedback(key, feedback)).load(task_id)

    async def list_feedback(self, task_id: str, *, owner: Owner = None) -> list[Feedback]:
        """Return the feedback on a task, in the order it was given."""
        found = await self._storage.list_feedback(task_key(task_id, owner))
        return [feedback.load(task_id) for feedback in found]


def _check_rating(rating: object) -> int | None:
    if rating is None:
        return None
    if isinstance(rating, bool) or not isinstance(rating, int):
        raise InvalidInputError("rating", f"must be a whole number, not {type(rating).__name__}")
    encode_json(rating, field="rating")
    return rating
