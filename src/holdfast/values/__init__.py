"""Values that all contracts share, and the functions on them; no I/O."""
