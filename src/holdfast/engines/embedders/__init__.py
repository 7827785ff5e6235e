"""Embedders: they convert text to vectors."""
