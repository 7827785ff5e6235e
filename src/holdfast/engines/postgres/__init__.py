"""The Postgres engine: embedded in a folder, or a server."""
