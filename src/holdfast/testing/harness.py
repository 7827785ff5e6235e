"""What the contract suite needs to know about an engine.

Write one subclass for an engine, then run the whole suite on it::

    pytest --pyargs holdfast.testing --engine my_module:MyHarness
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.memory.agent_memory import MemoryStores, StoredMemory
from holdfast.spi.archive.storage import ArchiveStorage
from holdfast.spi.wake import SessionWake

NOUNS = {
    "blobs": "blob",
    "blob_index": "blob_index",
    "boards": "boards",
    "channels": "channel",
    "checkpoints": "checkpoints",
    "episodes": "episodes",
    "graph": "graph",
    "history": "history",
    "items": "items",
    "keys": "keys",
    "long_term": "long_term",
    "memory": "agent_memory",
    "schedules": "schedules",
    "short_term": "short_term",
    "tasks": "ledger",
    "vectors": "vector",
}
"""Each contract, and the noun that its files are named after: ``test_<noun>*.py`` and so on."""

CONTRACTS = tuple(NOUNS)


def front(
    contract: Callable[..., Any], storage: Callable[..., Any], *own: str
) -> Callable[..., Any]:
    """What makes a store of a contract and of what an engine implements for it.

    The options named in ``own`` are the contract's, all others the engine's. ::

        stores = {"history": front(History, PostgresTranscripts)}
    """

    def store(*args: Any, **options: Any) -> Any:
        mine = {name: options.pop(name) for name in own if name in options}
        return contract(storage(*args, **options), **mine)

    return store


STATE_VERSIONS = "state versions"
"""What tests of kept versions need of an engine, in addition to ``short_term``."""


class Harness(ABC):
    """Opens, reopens and ages one engine, and reaches around its stores.

    One instance serves one test: ``open`` gives it an empty place of its own. An instance is used
    on one event loop; what is dear to start (a server) belongs on the class.
    """

    name: ClassVar[str]
    """What the engine is called in test ids."""

    contracts: ClassVar[frozenset[str]]
    """Which of ``CONTRACTS`` the engine provides: only their tests run on it."""

    without: ClassVar[frozenset[str]] = frozenset()
    """Names of tests of abilities that it refuses by design."""

    refuses: ClassVar[str] = ""
    """What a ``NotSupportedError`` names as its engine where it refuses a read by design."""

    memories: ClassVar[type[StoredMemory]] = StoredMemory
    """What an agent's memory is made of the stores with."""

    machine_thrift: ClassVar[int] = 1
    """State machines take this part of their steps: for an engine that differs from another one in
    nothing but how it connects."""

    state_versions: ClassVar[int] = 0
    """How many versions of a state the tests keep: 3, or 0 for an engine that keeps none."""

    @classmethod
    def reference(cls) -> type[Harness]:
        """The engine that the state machines compare this one with: the in-memory one."""
        from holdfast.testing.inmemory import InMemoryHarness  # noqa: PLC0415 - it subclasses this

        return InMemoryHarness

    @classmethod
    def keep_engines(cls) -> AbstractAsyncContextManager[None]:
        """While it is open, engines may stay connected on this loop from instance to instance.

        A state machine opens an instance for each of its sequences. By default nothing is kept.
        """
        return nullcontext()

    @abstractmethod
    async def open(self) -> None:
        """Connect, with nothing stored."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything that ``open`` took."""

    @abstractmethod
    async def reopen(self) -> None:
        """Forget every connection and cache, and connect again to what was kept."""

    @abstractmethod
    async def elapse(self, seconds: float) -> None:
        """Let the engine's clock go forward, without waiting."""

    async def turn_back(self, seconds: float) -> None:
        """Let the engine's clock go back, as that of a machine that is corrected."""
        await self.elapse(-seconds)

    async def hold_clock(self) -> None:  # noqa: B027 - a clock that stands still needs nothing
        """Let only ``elapse`` move the engine's clock from now on.

        A state machine that compares times asks for it; a clock that never moves by itself needs
        nothing, and one that cannot be stopped cannot be compared.
        """

    @abstractmethod
    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store of one of ``CONTRACTS`` for one tenant.

        Options that tests use: ``embedder`` (vectors, episodes, long_term), ``mode``, ``graph``
        and ``language`` (long_term), ``ttl_seconds`` (blobs: the default time to live), ``name``
        and ``retention_seconds`` (channels), ``kept_versions`` (short_term, if ``state_versions``).
        """

    def subject(self, contract: str, **options: Any) -> Any:
        """What a state machine and a probe call: a store, or for memories what opens one."""
        if contract == "memory":
            return partial(self.memory, **options)
        return self.store(contract, **options)

    def wakes(self, *, tenant: str = "default") -> SessionWake:
        """How sessions are found; for an engine that provides the contract ``memory``."""
        raise NotImplementedError(f"{self.name} does not show how it finds a session of {tenant}")

    def archive(self, *, tenant: str = "default") -> ArchiveStorage | None:
        """What dumps and loads the data of a tenant; ``None`` if the engine cannot."""
        del tenant
        return None

    def memory(
        self,
        agent: str,
        *,
        session_id: str | None = None,
        tenant: str = "default",
        **options: Any,
    ) -> AgentMemory:
        """An agent's memory on the engine's own stores; ``options`` are those of the episodes."""
        stores = MemoryStores(
            episodes=self.store("episodes", tenant=tenant, **options),
            short_term=self.store("short_term", tenant=tenant),
            wakes=self.wakes(tenant=tenant),
            long_term=self.store("long_term", tenant=tenant),
        )
        return self.memories(stores, agent, session_id=session_id)

    async def raw(self, contract: str) -> list[str | bytes]:
        """What the engine holds for a contract, read around the store; for all tenants."""
        raise NotImplementedError(f"{self.name} cannot show the raw data of {contract}")

    async def damage_blob(self, ref: str, *, truncate: bool) -> None:
        """Cut off or alter the last byte of a stored blob, around the store."""
        raise NotImplementedError(f"{self.name} cannot damage a blob")
