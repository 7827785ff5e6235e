"""OpenAI Agents: a session on ``state.history``. Needs the extra ``openai``."""

from holdfast.adapters.openai_agents.installed import EXTRA
from holdfast.adapters.openai_agents.session import CompactingSession, HoldfastSession

__all__ = ["EXTRA", "CompactingSession", "HoldfastSession"]
