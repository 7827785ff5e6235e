"""The durable task ledger, as agents, clients and workers use it."""

from __future__ import annotations

from holdfast.contracts.tasks.audit import AuditCalls
from holdfast.contracts.tasks.cleanup import CleanupCalls
from holdfast.contracts.tasks.clients import ClientCalls
from holdfast.contracts.tasks.contexts import ContextCalls
from holdfast.contracts.tasks.leases import LeaseCalls
from holdfast.contracts.tasks.progress import ProgressCalls
from holdfast.contracts.tasks.push import PushCalls
from holdfast.kernel.storage.ledger import TaskLedger


class Ledger(
    ClientCalls,
    LeaseCalls,
    ProgressCalls,
    AuditCalls,
    ContextCalls,
    PushCalls,
    CleanupCalls,
    TaskLedger,
):
    """``TaskLedger`` on any engine.

    ::

        ledger = Ledger(PostgresLedger(engine, tenant="acme"))
    """
