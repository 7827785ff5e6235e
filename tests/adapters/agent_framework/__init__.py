"""The adapter of Agent Framework, with the framework and without a language model."""
