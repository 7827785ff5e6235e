"""The task ledger in Postgres."""
