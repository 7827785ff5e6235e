"""Durable tasks: all that an engine implements for the ledger."""

from __future__ import annotations

from typing import Protocol

from holdfast.spi.tasks_cleanup import CleanupStorage
from holdfast.spi.tasks_clients import ClientStorage
from holdfast.spi.tasks_contexts import ContextStorage
from holdfast.spi.tasks_push import PushStorage
from holdfast.spi.tasks_timeline import AuditStorage
from holdfast.spi.tasks_workers import LeaseStorage, ProgressStorage


class TaskStorage(
    ClientStorage,
    LeaseStorage,
    ProgressStorage,
    AuditStorage,
    ContextStorage,
    PushStorage,
    CleanupStorage,
    Protocol,
):
    """The tasks of one tenant. Every method is one atomic step, and every argument is checked."""
