"""Sealed tasks: messages, steps, artifacts, results, notes and push configs are sealed."""
