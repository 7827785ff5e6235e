"""Conversations of pydantic-ai in Holdfast."""

from holdfast.adapters.pydantic_ai import installed as installed
from holdfast.adapters.pydantic_ai.conversations import HoldfastConversations

__all__ = ["HoldfastConversations"]
