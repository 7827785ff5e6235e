"""An engine of another distribution: what its entry point returns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from holdfast.spi.tasks.work import WorkStorage

GROUP = "holdfast.engines"
"""The group of entry points. The name of one is the scheme of the URLs that it opens."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the settings of a state say about an engine.

    >>> EngineOptions().command_timeout_seconds
    60
    """

    command_timeout_seconds: float = 60
    allow_unsafe: bool = False
    """Accept a server that may lose an acknowledged write."""


class Engine(Protocol):
    """A connected engine.

    A distribution names what opens it, and ``holdfast.open("sqlite:notes.db")`` finds it::

        [project.entry-points."holdfast.engines"]
        sqlite = "holdfast_sqlite:open_engine"
    """

    name: str
    """What it is called in errors and in ``holdfast doctor``."""

    version: str
    """What ``holdfast doctor`` shows of it."""

    durability: str
    """What a write that has returned survives, in a sentence."""

    contracts: frozenset[str]
    """What it stores, by the attributes of ``State``: ``history``, ``boards``, …"""

    @abstractmethod
    def storage(self, contract: str, tenant: str) -> Any:
        """Return the storage of one of its contracts for a tenant, as ``holdfast.spi`` has it."""

    @abstractmethod
    async def ping(self) -> None:
        """Return if it answers. Raises ``UnavailableError`` if not."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close its connections."""


@runtime_checkable
class TaskEngine(Engine, Protocol):
    """A connected engine that stores ``tasks``."""

    @abstractmethod
    def work(self) -> WorkStorage:
        """Return what tells workers which tenants have work."""


OpenEngine: TypeAlias = Callable[[str, EngineOptions], Awaitable[Engine]]
"""What an entry point names: takes the whole URL and the options, returns the connected engine."""
