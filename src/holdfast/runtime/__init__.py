"""Durable tasks at work: the app, what a handler sees, and the worker that runs handlers."""
