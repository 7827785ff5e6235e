"""The adapter of pydantic-ai, with the framework and without a language model."""
