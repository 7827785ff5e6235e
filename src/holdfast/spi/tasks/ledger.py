"""Durable tasks: all that an engine implements for the ledger."""

from __future__ import annotations

from typing import Protocol

from holdfast.spi.tasks.adopted import AdoptedStorage
from holdfast.spi.tasks.changes import ChangeStorage
from holdfast.spi.tasks.children import ChildStorage
from holdfast.spi.tasks.cleanup import CleanupStorage
from holdfast.spi.tasks.clients import ClientStorage
from holdfast.spi.tasks.contexts import ContextStorage
from holdfast.spi.tasks.forks import ForkStorage
from holdfast.spi.tasks.inbox import InboxStorage
from holdfast.spi.tasks.operations import OperationStorage
from holdfast.spi.tasks.push import PushStorage
from holdfast.spi.tasks.timeline import AuditStorage
from holdfast.spi.tasks.workers import LeaseStorage, ProgressStorage


class TaskStorage(
    ClientStorage,
    LeaseStorage,
    ProgressStorage,
    AuditStorage,
    ContextStorage,
    PushStorage,
    CleanupStorage,
    AdoptedStorage,
    OperationStorage,
    ForkStorage,
    ChildStorage,
    InboxStorage,
    ChangeStorage,
    Protocol,
):
    """The tasks of one tenant. Every method is one atomic step. The caller checks all arguments."""
