"""Durable tasks in memory: the whole ledger, on the engine's clock."""

from __future__ import annotations

from holdfast.engines.inmemory.tasks.adopted import InMemoryAdopted
from holdfast.engines.inmemory.tasks.audit import InMemoryAudit
from holdfast.engines.inmemory.tasks.changes import InMemoryChanges
from holdfast.engines.inmemory.tasks.children import InMemoryChildren
from holdfast.engines.inmemory.tasks.cleanup import InMemoryCleanup
from holdfast.engines.inmemory.tasks.forks import InMemoryForks
from holdfast.engines.inmemory.tasks.inbox import InMemoryInbox
from holdfast.engines.inmemory.tasks.lease import InMemoryLeases
from holdfast.engines.inmemory.tasks.operations import InMemoryOperations
from holdfast.engines.inmemory.tasks.push import InMemoryPush
from holdfast.spi.tasks.ledger import TaskStorage


class InMemoryLedger(
    InMemoryOperations,
    InMemoryForks,
    InMemoryChildren,
    InMemoryInbox,
    InMemoryChanges,
    InMemoryLeases,
    InMemoryAdopted,
    InMemoryAudit,
    InMemoryPush,
    InMemoryCleanup,
    TaskStorage,
):
    """All tasks of one tenant in memory; two views of one tenant see the same tasks.

    The cost of a write does not grow with the size of its task.

    >>> from holdfast.engines.inmemory.engine import InMemory
    >>> storage = InMemoryLedger(InMemory(), tenant="acme")
    """
