"""Claims and leases of tasks, and how a worker ends its work."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import (
    check_agents,
    check_extras,
    check_lease,
    check_leases,
)
from holdfast.contracts.tasks.questions import check_form
from holdfast.contracts.tasks.queues import check_limits
from holdfast.contracts.tasks.scope import LedgerCalls
from holdfast.contracts.tasks.versions import check_versions
from holdfast.spi.tasks.draft import check_run_after
from holdfast.spi.tasks.records import lease_on
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.spi.tasks.workers import Completed, Outcome, TaskClaim
from holdfast.values.checks import (
    check_absent_id,
    check_count,
    check_id,
    check_ids,
    check_list,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.values.codec import encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.lifecycle import WAITING, TaskState, check_state
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.records import (
    LEASE_SECONDS,
    ClaimedTask,
    Completion,
    Lease,
    TaskRecord,
)


@runtime_checkable
class LeaseLedger(Protocol):
    """Tasks as a queue for workers, with leases and fences.

    Each claim raises the task's fence. A worker's write is accepted while the task is ``working``
    under the fence of its lease, and refused with ``LeaseLostError``, with nothing written,
    afterwards. ``recover_expired`` takes back expired leases. Until then the holder may still write
    and even extend the lease, since no other worker can have had the task in between.

    ``attempts`` counts claims since the last progress. A stored step, an answer, a pause, a sleep
    and a release are progress. A task whose attempt ends without progress at ``max_attempts``
    fails, with the reason, instead of returning to the queue.

    When a task leaves ``working``, a requested cancel takes precedence, whatever the worker
    reports. When it would return to the queue, a requested pause makes it ``paused``.

    Promises:

    - a claimed task is working, with the lease on it
    - a claim raises the fence and the attempts by one
    - a claimed task comes with its messages
    - the task that has waited longest is claimed first
    - a task is not claimed before its run_after
    - a claim takes at most limit tasks
    - a limit of zero claims nothing
    - only tasks of the named agents are claimed
    - an empty list of agents claims nothing
    - 50 concurrent claims of 20 tasks give each once
    - one tenant never claims another's tasks
    - a claim takes at most one task of a context
    - a context at work is skipped until its task leaves working
    - without serial_contexts tasks of one context run side by side
    - contexts of different owners do not wait for each other
    - a worker's name and lease_seconds are checked before anything is claimed
    - a task gets the first version of its agent with its first claim
    - a task that began with a version is claimed only where that version is known
    - a task of an unknown version holds up no other task
    - a claim stores the version of the app with its attempt
    - versions and app_version are checked before anything is claimed
    - a heartbeat extends the lease
    - a heartbeat reports a requested cancel and a requested pause
    - a lease that expired but was not recovered is still good
    - a task whose lease has not expired is not recovered
    - after the clock went back a dead worker's task waits for one lease at most
    - after the clock went back a worker that lives keeps its task
    - a task whose lease expired goes back to the queue with the reason
    - what was recovered or released goes on before what came after it
    - an expired task at max_attempts is failed with the reason
    - an expired task with a cancel requested is canceled
    - an expired task with a pause requested is paused
    - at most limit tasks are recovered, the longest expired first
    - 10 concurrent recoveries give each task once
    - after a lease is taken over no write of the old holder takes effect
    - a lease is lost when its task leaves working
    - a lease with another fence or an unknown task is lost
    - a worker can end and suspend a task in every way the table has
    - complete_many completes each task whose lease holds and leaves the others alone
    - complete_many notifies followers as each transition would
    - a cancel requested before complete_many wins
    - complete_many of nothing does nothing
    - complete_many stores messages and results as each transition would
    - complete_many leaves alone a task whose message has the id of another one
    - a worker cannot move a task along an edge that is not in the table
    - an unknown state is refused
    - the message of a transition is in the history and is the status message
    - the status message and the note are those of the last change of state
    - a failed attempt goes back to the queue and waits for its run_after
    - a run_after given as a timedelta counts from the engine's now
    - a failed attempt at max_attempts ends the task as failed
    - a sleep sets the attempts back
    - run_after and progress go only with submitted
    - a step key for the answer goes only with a question
    - a question whose step is stored already is a conflict
    - options go only with a question
    - a schema goes only with a question and refers to nothing outside
    - the answer to a question is stored as its step
    - the result of a completed task comes back exactly as it went in
    - a result that is not json is refused by its path and the task stays as it is
    - a result goes only with completed
    - a task that was canceled instead has no result
    - a cancel that was requested comes before whatever the worker reports
    - a completion that races a cancel never wins after it
    - a pause that was requested holds a task on its way to the queue
    - a completion comes before a pause that was requested
    - a pause sets the attempts back
    - a carried out pause is not requested any more
    - a released task can be claimed at once and has not used an attempt
    - a released task with a cancel requested is canceled
    - attempts never exceed max_attempts however workers die
    - leases and the queue are still there after a reopen
    """

    @abstractmethod
    async def claim(
        self,
        worker: str,
        *,
        agents: Sequence[Agent] | None = None,
        limit: int = 1,
        lease_seconds: float = LEASE_SECONDS,
        serial_contexts: bool = True,
        messages_limit: int | None = None,
        limits: Sequence[Limit] = (),
        versions: Mapping[AgentId, Sequence[str]] | None = None,
        app_version: str | None = None,
    ) -> list[ClaimedTask]:
        """Claim up to ``limit`` tasks that are due, the highest priority first.

        Within a priority, those that have waited longest come first. ``serial_contexts`` takes at
        most one task of a context and none of a context that has a task at work. Tasks include
        their last ``messages_limit`` messages (default: all). ``limits`` restricts how many tasks
        run at once and how many start in a period, across all workers that pass them.

        ``versions`` lists the handler versions that the worker has, by agent. ``app_version`` is
        the version of its app, which is stored with the claim. A task without a version gets the
        first one of its agent; a task that has one is claimed only by a worker that lists it.

        ::

            for claimed in await ledger.claim("worker-1", agents=["writer"], limit=10):
                start(claimed.task, claimed.lease)
        """
        ...

    @abstractmethod
    async def heartbeat(self, lease: Lease, *, lease_seconds: float = LEASE_SECONDS) -> Lease:
        """Extend a lease to ``lease_seconds`` from now. Returns it with the requests of clients.

        ::

            lease = await ledger.heartbeat(lease)
            if lease.cancel_requested:
                handler.cancel()
        """
        ...

    @abstractmethod
    async def transition(
        self,
        lease: Lease,
        to: TaskState | str,
        *,
        message: ChatMessage | None = None,
        note: str = "",
        run_after: datetime | timedelta | None = None,
        progress: bool = False,
        ask: StepKey | None = None,
        result: Any = None,
        children: Sequence[str] = (),
        topic: str | None = None,
        options: Sequence[str] | None = None,
        schema: dict[str, Any] | None = None,
    ) -> TaskRecord:
        """End or suspend the work. The returned record has the state that the task reached.

        With ``completed``, ``result`` is any JSON, which the record has from then on. ``submitted``
        is a failed attempt that is retried after ``run_after``; with ``progress=True`` it is a
        sleep, with ``children`` the task waits until these children have ended, with ``topic``
        until a message of that topic arrives or until ``run_after``. With ``input-required`` or
        ``auth-required``, ``message`` is the question, and ``ask`` the step that the answer will be
        stored as. ``options`` are the texts that an answer may have; ``schema`` is a JSON Schema
        for the answer's data, or for its text parsed as JSON. ``message`` is added to the task's
        messages, as by ``append_message``.

        ::

            await ledger.transition(lease, "completed", message=ChatMessage.assistant("Done"))
        """
        ...

    @abstractmethod
    async def complete_many(self, leases: Sequence[Lease | Completion]) -> list[TaskState | None]:
        """End the work on several tasks in one step, each as ``transition`` to ``completed`` does.

        A ``Completion`` is a lease with the task's last message and its result. Returns the state
        that each task reached, in the order given; ``None`` for one that stays as it is: its lease
        is lost, or its message has the id of another one, as ``transition`` would raise.

        ::

            reached = await ledger.complete_many([first.lease, Completion(second.lease, result=3)])
        """
        ...

    @abstractmethod
    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        """Return an unfinished task to the queue without counting an attempt, as on shutdown.

        ::

            await ledger.release(lease, note="worker-1 is shutting down")
        """
        ...

    @abstractmethod
    async def recover_expired(self, *, limit: int = 100) -> list[TaskRecord]:
        """Take back tasks whose lease has expired, the longest expired first.

        Any worker may call it at any time. The records have the new state of each: ``submitted``,
        ``failed`` at ``max_attempts``, or ``canceled`` or ``paused`` if that was requested.

        ::

            recovered = await ledger.recover_expired()
        """
        ...


class LeaseCalls(LedgerCalls, LeaseLedger):
    """Implements ``LeaseLedger``: checks the arguments, then calls the engine's storage."""

    @renamed(history_length="messages_limit")
    async def claim(
        self,
        worker: str,
        *,
        agents: Sequence[Agent] | None = None,
        limit: int = 1,
        lease_seconds: float = LEASE_SECONDS,
        serial_contexts: bool = True,
        messages_limit: int | None = None,
        limits: Sequence[Limit] = (),
        versions: Mapping[AgentId, Sequence[str]] | None = None,
        app_version: str | None = None,
    ) -> list[ClaimedTask]:
        """Claim up to ``limit`` tasks that are due, those that have waited longest first."""
        claim = TaskClaim(
            check_id("worker", worker),
            check_agents(agents),
            check_count("limit", limit),
            check_seconds("lease_seconds", lease_seconds),
            bool(serial_contexts),
            check_optional_count("messages_limit", messages_limit),
            check_limits(limits),
            check_versions(versions),
            check_absent_id("app_version", app_version),
        )
        return [
            ClaimedTask(found.load(), lease_on(found.task))
            for found in await self._storage.claim(claim)
        ]

    async def heartbeat(self, lease: Lease, *, lease_seconds: float = LEASE_SECONDS) -> Lease:
        """Extend a lease to ``lease_seconds`` from now. Returns it with the requests of clients."""
        seconds = check_seconds("lease_seconds", lease_seconds)
        return await self._storage.heartbeat(check_lease(lease), seconds)

    async def transition(
        self,
        lease: Lease,
        to: TaskState | str,
        *,
        message: ChatMessage | None = None,
        note: str = "",
        run_after: datetime | timedelta | None = None,
        progress: bool = False,
        ask: StepKey | None = None,
        result: Any = None,
        children: Sequence[str] = (),
        topic: str | None = None,
        options: Sequence[str] | None = None,
        schema: dict[str, Any] | None = None,
    ) -> TaskRecord:
        """End or suspend the work. The returned record has the state that the task reached."""
        outcome = Outcome(
            check_state("to", to),
            None if message is None else StoredMessage.of(message),
            check_text("note", note),
            check_run_after(run_after),
            bool(progress),
            ask,
            result=None if result is None else encode_json(result, field="result"),
            children=check_ids("children", children),
            topic=None if topic is None else check_id("topic", topic),
            form=check_form(options, schema),
        )
        check_extras(outcome.to, run_after=run_after, progress=progress, ask=ask)
        if result is not None and outcome.to is not TaskState.COMPLETED:
            raise InvalidInputError("result", "can only be combined with the state completed")
        if outcome.children and outcome.to is not TaskState.SUBMITTED:
            raise InvalidInputError("children", "can only be combined with to='submitted'")
        if topic is not None and outcome.to is not TaskState.SUBMITTED:
            raise InvalidInputError("topic", "can only be combined with to='submitted'")
        if outcome.form is not None and outcome.to not in WAITING:
            raise InvalidInputError(
                "options" if schema is None else "schema",
                "can only be combined with input-required or auth-required",
            )
        return (await self._storage.transition(check_lease(lease), outcome)).load()

    async def complete_many(self, leases: Sequence[Lease | Completion]) -> list[TaskState | None]:
        """End the work on several tasks, each as ``transition`` to ``completed`` does."""
        given: Sequence[Any] = check_list("leases", leases)
        ends = [one if isinstance(one, Completion) else Completion(one) for one in given]
        checked = check_leases([one.lease for one in ends])
        claims = [_completed(at, one) for at, one in enumerate(ends) if one.lease.fence]
        reached = await self._storage.complete_many(claims) if claims else {}
        return [reached.get(lease.task_id) for lease in checked]

    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        """Return an unfinished task to the queue without counting an attempt."""
        text = check_text("note", note)
        return (await self._storage.release(check_lease(lease), text)).load()

    async def recover_expired(self, *, limit: int = 100) -> list[TaskRecord]:
        """Take back tasks whose lease has expired, the longest expired first."""
        found = await self._storage.recover_expired(check_count("limit", limit))
        return [task.load() for task in found]


def _completed(at: int, end: Completion) -> Completed:
    """Check the message and the result of a completion."""
    message = None if end.message is None else StoredMessage.of(end.message)
    if end.result is None:
        return Completed(end.lease, message)
    return Completed(end.lease, message, encode_json(end.result, field=f"leases[{at}].result"))
