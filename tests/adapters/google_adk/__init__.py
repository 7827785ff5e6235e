"""The adapter of Google ADK, with the framework and without a language model."""
