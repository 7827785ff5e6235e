"""The words that all contracts share."""
