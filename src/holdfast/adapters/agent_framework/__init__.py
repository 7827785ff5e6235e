"""Messages of Microsoft Agent Framework in Holdfast."""

from holdfast.adapters.agent_framework import installed as installed
from holdfast.adapters.agent_framework.history import HoldfastHistory

__all__ = ["HoldfastHistory"]
