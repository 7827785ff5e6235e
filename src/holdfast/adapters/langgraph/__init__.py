"""LangGraph: a checkpointer on ``state.checkpoints`` and a store on ``state.items``.

Needs the extra ``langgraph``.
"""

from holdfast.adapters.langgraph.installed import EXTRA
from holdfast.adapters.langgraph.saver import HoldfastSaver
from holdfast.adapters.langgraph.serde import StrictSerializer
from holdfast.adapters.langgraph.store import HoldfastStore

__all__ = ["EXTRA", "HoldfastSaver", "HoldfastStore", "StrictSerializer"]
