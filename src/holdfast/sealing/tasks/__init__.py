"""Encrypted tasks: messages, steps, artifacts, results, notes and push configs."""
