"""Durable tasks, as agents, clients and workers use them: one file per subject."""
