"""The contracts, one Protocol a file."""
