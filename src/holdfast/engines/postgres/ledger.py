"""Durable tasks, on Postgres: the whole ledger, on the database's clock."""

from __future__ import annotations

from holdfast.engines.postgres.ledger_audit import PostgresAudit
from holdfast.engines.postgres.ledger_cleanup import PostgresCleanup
from holdfast.engines.postgres.ledger_client import PostgresClients
from holdfast.engines.postgres.ledger_context import PostgresContexts
from holdfast.engines.postgres.ledger_lease import PostgresLeases
from holdfast.engines.postgres.ledger_progress import PostgresProgress
from holdfast.engines.postgres.ledger_push import PostgresPush
from holdfast.spi.tasks import TaskStorage


class PostgresLedger(
    PostgresClients,
    PostgresLeases,
    PostgresProgress,
    PostgresAudit,
    PostgresContexts,
    PostgresPush,
    PostgresCleanup,
    TaskStorage,
):
    """``TaskStorage`` in tables; every call is one statement.

    What a write costs does not grow with what a task already holds, nor a claim with how many tasks
    have ended.

    ::

        storage = PostgresLedger(engine, tenant="acme")
    """
