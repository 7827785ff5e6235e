"""The result of ``state.ops.health()``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Condition: TypeAlias = Literal["ok", "degraded", "down"]


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """The health of one engine: whether it answers, its latency, and its durability.

    >>> EngineHealth("inmemory", "ok", serves=("history",), durability="none").status
    'ok'
    """

    engine: str
    status: Condition
    serves: tuple[str, ...]
    durability: str
    latency_seconds: float = 0.0
    """Duration of the ping; for an engine that is down, the time until it failed."""
    detail: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Problems of the configuration, each with its fix."""
    where: str = ""
    """The folder or the server; only ``holdfast doctor`` fills it in."""
    sealed: str = ""
    """How content is encrypted, and with which keys; only ``holdfast doctor`` fills it in."""


@dataclass(frozen=True, slots=True)
class Health:
    """The health of all engines of a ``State``; its status is the worst one of them.

    >>> Health((EngineHealth("inmemory", "ok", serves=(), durability="none"),)).status
    'ok'
    """

    engines: tuple[EngineHealth, ...]

    @property
    def status(self) -> Condition:
        """The worst status of all engines."""
        order: tuple[Condition, ...] = ("ok", "degraded", "down")
        return max((engine.status for engine in self.engines), key=order.index, default="ok")
