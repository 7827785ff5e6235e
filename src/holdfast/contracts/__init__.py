"""The APIs that agents call. Each checks its arguments and passes them to an engine."""
