"""The durable task ledger: work that goes on where it was, whatever dies."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from holdfast.kernel.storage.ledger_audit import AuditLedger
from holdfast.kernel.storage.ledger_cleanup import CleanupLedger
from holdfast.kernel.storage.ledger_client import ClientLedger
from holdfast.kernel.storage.ledger_context import ContextLedger
from holdfast.kernel.storage.ledger_lease import LeaseLedger
from holdfast.kernel.storage.ledger_progress import ProgressLedger
from holdfast.kernel.storage.ledger_push import PushLedger
from holdfast.kernel.storage.ledger_transcript import TranscriptLedger


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
    Protocol,
):
    """Everything about durable tasks; each concern is a Protocol of its own, with its promises.

    ``ClientLedger``: submit, read, answer, cancel, pause, retry. ``LeaseLedger``: claim, heartbeat,
    transition, release, recover. ``ProgressLedger``: messages, steps, artifacts. ``AuditLedger``:
    events, follow, history, replay, feedback. ``ContextLedger``: conversations. ``PushLedger``:
    push configs and the outbox. ``TranscriptLedger``: what is to be copied into session logs.
    ``CleanupLedger``: what must not outlive a task.

    Every method is one atomic step: it happens as a whole or, with an error, not at all.

    ::

        task = await ledger.submit("writer", ChatMessage.user("Tides of Brest?"))
        [claimed] = await ledger.claim("worker-1", agents=["writer"])
        await ledger.record_step(claimed.lease, StepKey("fetch"), pages)
        await ledger.transition(claimed.lease, "completed")
    """
