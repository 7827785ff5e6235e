"""The durable task ledger, as agents, clients and workers use it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from holdfast.contracts.tasks.adopted import AdoptedCalls, AdoptedLedger
from holdfast.contracts.tasks.audit import AuditCalls, AuditLedger
from holdfast.contracts.tasks.changes import ChangeCalls, ChangeLedger
from holdfast.contracts.tasks.children import ChildCalls, ChildLedger
from holdfast.contracts.tasks.cleanup import CleanupCalls, CleanupLedger
from holdfast.contracts.tasks.client_ledger import ClientLedger
from holdfast.contracts.tasks.clients import ClientCalls
from holdfast.contracts.tasks.contexts import ContextCalls, ContextLedger, TranscriptLedger
from holdfast.contracts.tasks.forks import ForkCalls, ForkLedger
from holdfast.contracts.tasks.inbox import InboxCalls, InboxLedger
from holdfast.contracts.tasks.leases import LeaseCalls, LeaseLedger
from holdfast.contracts.tasks.operations import OperationCalls, OperationLedger
from holdfast.contracts.tasks.progress import ProgressCalls, ProgressLedger
from holdfast.contracts.tasks.push import PushCalls, PushLedger
from holdfast.contracts.tasks.queues import QueueCalls, QueueLedger
from holdfast.contracts.tasks.results import ResultCalls, ResultLedger


@runtime_checkable
class TaskLedger(
    ClientLedger,
    LeaseLedger,
    ProgressLedger,
    AuditLedger,
    ContextLedger,
    PushLedger,
    TranscriptLedger,
    CleanupLedger,
    AdoptedLedger,
    QueueLedger,
    OperationLedger,
    ForkLedger,
    ResultLedger,
    ChildLedger,
    InboxLedger,
    ChangeLedger,
    Protocol,
):
    """Everything about durable tasks. Each concern is a separate Protocol with its promises.

    ``ClientLedger``: submit, read, answer, cancel, pause, retry. ``LeaseLedger``: claim, heartbeat,
    transition, release, recover. ``ProgressLedger``: messages, steps, artifacts. ``AuditLedger``:
    events, follow, history, replay, feedback. ``ContextLedger``: conversations. ``PushLedger``:
    push configs and the outbox. ``TranscriptLedger``: messages to copy into session logs.
    ``CleanupLedger``: what must not outlive a task. ``AdoptedLedger``: tasks that another system
    runs, and delete. ``QueueLedger``: many tasks in one call, priorities and limits.
    ``OperationLedger``: counts, workers, and requests to many tasks. ``ForkLedger``: tasks that
    continue from what another one stored. ``ResultLedger``: wait for the end of a task.
    ``ChildLedger``: tasks that tasks submit. ``InboxLedger``: messages to running tasks.
    ``ChangeLedger``: the feed of changes.

    Every method is one atomic step: it happens as a whole or, with an error, not at all.

    ::

        task = await ledger.submit("writer", ChatMessage.user("Tides of Brest?"))
        [claimed] = await ledger.claim("worker-1", agents=["writer"])
        await ledger.record_step(claimed.lease, StepKey("fetch"), pages)
        await ledger.transition(claimed.lease, "completed")
    """


class Ledger(
    ClientCalls,
    LeaseCalls,
    ProgressCalls,
    AuditCalls,
    ContextCalls,
    PushCalls,
    CleanupCalls,
    AdoptedCalls,
    QueueCalls,
    OperationCalls,
    ForkCalls,
    ResultCalls,
    ChildCalls,
    InboxCalls,
    ChangeCalls,
    TaskLedger,
):
    """Implements ``TaskLedger``: checks the arguments, then calls the engine's storage.

    ::

        ledger = Ledger(PostgresLedger(engine, tenant="acme"))
    """
