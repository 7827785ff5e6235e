"""The in-memory engine, for tests and single processes."""
