"""What agents call: each contract checks its input once, and hands checked records to an engine."""
