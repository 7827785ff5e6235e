"""What fits a model's context window: compaction of messages, and the types of ``state.memory``.

::

    from holdfast.memory import TokenBudget, compact
"""

from holdfast.contracts.long_term_memory import FactStore
from holdfast.contracts.working_memory import AgentFacts, WorkingMemory
from holdfast.memory.compaction import (
    SlidingWindow,
    Strategy,
    SummaryCheckpoint,
    TokenBudget,
    TrimToolResults,
    compact,
    compact_async,
    estimate_tokens,
)
from holdfast.values.memory import Assembled, ContextItem, Hydrated
from holdfast.values.wakes import Wake, WakeStatus

__all__ = [
    "AgentFacts",
    "Assembled",
    "ContextItem",
    "FactStore",
    "Hydrated",
    "SlidingWindow",
    "Strategy",
    "SummaryCheckpoint",
    "TokenBudget",
    "TrimToolResults",
    "Wake",
    "WakeStatus",
    "WorkingMemory",
    "compact",
    "compact_async",
    "estimate_tokens",
]
