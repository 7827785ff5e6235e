"""What ``State.health()`` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Condition: TypeAlias = Literal["ok", "degraded", "down"]


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """One engine: whether it answers, how fast, and what its durability is.

    >>> EngineHealth("inmemory", "ok", serves=("history",), durability="none").status
    'ok'
    """

    engine: str
    status: Condition
    serves: tuple[str, ...]
    durability: str
    latency_seconds: float = 0.0
    """How long the answer took; of an engine that is down, how long it was waited for."""
    detail: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What to change, each with how."""
    where: str = ""
    """The folder or the server; only ``holdfast doctor`` fills it in."""


@dataclass(frozen=True, slots=True)
class Health:
    """All engines of a ``State``; the whole is as well as its worst part.

    >>> Health((EngineHealth("inmemory", "ok", serves=(), durability="none"),)).status
    'ok'
    """

    engines: tuple[EngineHealth, ...]

    @property
    def status(self) -> Condition:
        """The worst status of all engines."""
        order: tuple[Condition, ...] = ("ok", "degraded", "down")
        return max((engine.status for engine in self.engines), key=order.index, default="ok")
