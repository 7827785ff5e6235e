"""The identity of agents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from holdfast.values.checks import check_id
from holdfast.values.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class AgentId:
    """An agent's name: a ``key``, and optionally a ``type`` before it.

    An agent is stored as the canonical string ``type/key``, or ``key`` alone. The type must not
    have a slash; the key may.

    >>> str(AgentId("planner", "a1"))
    'planner/a1'
    >>> AgentId.parse("planner/a1") == AgentId("planner", "a1")
    True
    """

    type: str
    key: str

    def __post_init__(self) -> None:
        if not isinstance(self.type, str):
            raise InvalidInputError("agent_id", "type must be text; leave it empty for none")
        if "/" in self.type:
            raise InvalidInputError("agent_id", "type must not contain '/': it ends the type")
        key: object = self.key
        if not isinstance(key, str) or not key:
            check_id("agent_id", key)
        check_id("agent_id", str(self))
        if not self.type and all(self.key.partition("/")):
            raise InvalidInputError(
                "agent_id", f"{self.key!r} reads as type and key: use AgentId.parse({self.key!r})"
            )

    def __str__(self) -> str:
        return f"{self.type}/{self.key}" if self.type else self.key

    @classmethod
    def parse(cls, text: str | AgentId) -> AgentId:
        """Parse a canonical string; an ``AgentId`` is returned unchanged.

        >>> AgentId.parse("solo")
        AgentId(type='', key='solo')
        """
        if isinstance(text, AgentId):
            return text
        if not isinstance(text, str):
            raise InvalidInputError(
                "agent_id", f"must be an AgentId or text, not {type(text).__name__}"
            )
        return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> AgentId:
    """Parse a canonical string, with a cache: the same few agents are parsed again and again."""
    kind, _, key = text.partition("/")
    return AgentId(kind, key) if kind and key else AgentId("", text)


Agent: TypeAlias = AgentId | str
"""An agent, or its canonical string: every method accepts both."""


class AllAgents(Enum):
    """The type of ``ALL_AGENTS``, for methods that can cover all agents.

    >>> AllAgents.ALL_AGENTS is ALL_AGENTS
    True
    """

    ALL_AGENTS = "all agents"


ALL_AGENTS: Final = AllAgents.ALL_AGENTS
"""All agents of the tenant, or of the owner of a ``for_owner`` view."""

AnyAgent: TypeAlias = Agent | Literal[AllAgents.ALL_AGENTS]
"""An agent, or all of them."""
