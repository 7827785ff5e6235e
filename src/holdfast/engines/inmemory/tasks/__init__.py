"""The task ledger in memory."""
