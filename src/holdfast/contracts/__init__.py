"""What agents call: each contract checks its input, and passes checked records to an engine."""
