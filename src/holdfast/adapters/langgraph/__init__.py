"""LangGraph: a checkpointer on ``state.checkpoints``. Needs the extra ``langgraph``."""

from holdfast.adapters.langgraph.installed import EXTRA
from holdfast.adapters.langgraph.saver import HoldfastSaver
from holdfast.adapters.langgraph.serde import StrictSerializer

__all__ = ["EXTRA", "HoldfastSaver", "StrictSerializer"]
