"""The hybrid engine: Redis answers and acknowledges, Postgres stores permanently."""
