"""Working memory and facts: the two memories of seed 002 under one name."""

from holdfast.kernel.storage.long_term import LongTermMemory, Memory
from holdfast.kernel.storage.short_term import ShortTerm, ShortTermMemory, StateSnapshot

__all__ = ["LongTermMemory", "Memory", "ShortTerm", "ShortTermMemory", "StateSnapshot"]
