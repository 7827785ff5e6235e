"""Durable tasks, on Postgres: the whole ledger, on the database's clock."""

from __future__ import annotations

from holdfast.backends.postgres.ledger_audit import PostgresAudit
from holdfast.backends.postgres.ledger_cleanup import PostgresCleanup
from holdfast.backends.postgres.ledger_client import PostgresClients
from holdfast.backends.postgres.ledger_context import PostgresContexts
from holdfast.backends.postgres.ledger_lease import PostgresLeases
from holdfast.backends.postgres.ledger_progress import PostgresProgress
from holdfast.backends.postgres.ledger_push import PostgresPush
from holdfast.backends.postgres.ledger_transcript import PostgresTranscripts
from holdfast.kernel.storage.ledger import TaskLedger


class PostgresLedger(
    PostgresClients,
    PostgresLeases,
    PostgresProgress,
    PostgresAudit,
    PostgresContexts,
    PostgresPush,
    PostgresTranscripts,
    PostgresCleanup,
    TaskLedger,
):
    """``TaskLedger`` in tables; every call is one statement, but for ``retry``, which reads first.

    What a write costs does not grow with what a task already holds, nor a claim with how many tasks
    have ended.

    ::

        ledger = PostgresLedger(engine, tenant="acme")
    """
