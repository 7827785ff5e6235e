"""The knowledge graph in Apache AGE: an engine for Holdfast, found by its entry point."""
