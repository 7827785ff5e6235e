"""Durable tasks, on Postgres: the whole ledger, on the database's clock."""

from __future__ import annotations

from holdfast.engines.postgres.tasks.adopted import PostgresAdopted
from holdfast.engines.postgres.tasks.audit import PostgresAudit
from holdfast.engines.postgres.tasks.changes import PostgresChanges
from holdfast.engines.postgres.tasks.children import PostgresChildren
from holdfast.engines.postgres.tasks.cleanup import PostgresCleanup
from holdfast.engines.postgres.tasks.client import PostgresClients
from holdfast.engines.postgres.tasks.context import PostgresContexts
from holdfast.engines.postgres.tasks.forks import PostgresForks
from holdfast.engines.postgres.tasks.inbox import PostgresInbox
from holdfast.engines.postgres.tasks.lease import PostgresLeases
from holdfast.engines.postgres.tasks.operations import PostgresOperations
from holdfast.engines.postgres.tasks.progress import PostgresProgress
from holdfast.engines.postgres.tasks.push import PostgresPush
from holdfast.spi.tasks.ledger import TaskStorage


class PostgresLedger(
    PostgresClients,
    PostgresLeases,
    PostgresProgress,
    PostgresAudit,
    PostgresContexts,
    PostgresPush,
    PostgresCleanup,
    PostgresAdopted,
    PostgresOperations,
    PostgresForks,
    PostgresChildren,
    PostgresInbox,
    PostgresChanges,
    TaskStorage,
):
    """``TaskStorage`` in tables; every call is one statement.

    The cost of a write does not grow with the size of its task, and the cost of a claim does not
    grow with the number of ended tasks.

    ::

        storage = PostgresLedger(engine, tenant="acme")
    """
