"""State machines, one for each contract."""
