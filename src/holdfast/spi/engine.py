"""The interface of an engine from another distribution, which its entry point returns."""

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
    """The settings of a state that concern an engine.

    >>> EngineOptions().command_timeout_seconds
    60
    """

    command_timeout_seconds: float = 60
    allow_unsafe: bool = False
    """Accept a server that may lose an acknowledged write."""


class Engine(Protocol):
    """A connected engine.

    A distribution names the function that opens it, for ``holdfast.open("sqlite:notes.db")``::

        [project.entry-points."holdfast.engines"]
        sqlite = "holdfast_sqlite:open_engine"
    """

    name: str
    """Its name in errors and in ``holdfast doctor``."""

    version: str
    """The version that ``holdfast doctor`` shows."""

    durability: str
    """One sentence on what an acknowledged write survives."""

    contracts: frozenset[str]
    """The contracts that it stores, by the attributes of ``State``: ``history``, ``boards``, …"""

    @abstractmethod
    def storage(self, contract: str, tenant: str) -> Any:
        """Return the storage of a contract for a tenant, a Protocol of ``holdfast.spi``."""

    @abstractmethod
    async def ping(self) -> None:
        """Check that it answers. Raises ``UnavailableError`` if it does not."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close its connections."""


@runtime_checkable
class TaskEngine(Engine, Protocol):
    """A connected engine that stores ``tasks``."""

    @abstractmethod
    def work(self) -> WorkStorage:
        """Return the storage from which workers learn which tenants have work."""


OpenEngine: TypeAlias = Callable[[str, EngineOptions], Awaitable[Engine]]
"""The function of an entry point: takes the whole URL and options, returns a connected engine."""
