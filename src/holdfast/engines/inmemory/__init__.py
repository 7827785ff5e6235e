"""The engine that lives in the process."""
