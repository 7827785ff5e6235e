"""What the runtime needs of a ``State``: stores of one tenant, and a way to other tenants."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.owners import MemoryScope
from holdfast.kernel.storage.agent_memory import AgentMemory
from holdfast.kernel.storage.blob import Blobs
from holdfast.kernel.storage.history import HistoryProvider
from holdfast.kernel.storage.ledger import TaskLedger
from holdfast.kernel.storage.ledger_work import WorkSignal
from holdfast.kernel.storage.short_term import ShortTerm


class SessionLogs(Protocol):
    """What the runtime needs of session logs."""

    async def clear(self, session_id: str) -> int:
        """Remove the log of a session; returns how many events it had."""
        ...


class TaskStores(Protocol):
    """The stores that handlers and workers use; ``holdfast.State`` is one."""

    @property
    def tenant(self) -> str:
        """Whose stores they are."""
        ...

    @property
    def tasks(self) -> TaskLedger:
        """The ledger."""
        ...

    @property
    def blobs(self) -> Blobs:
        """Where large results go."""
        ...

    @property
    def history(self) -> HistoryProvider:
        """Transcripts of handlers."""
        ...

    @property
    def episodes(self) -> SessionLogs:
        """The session logs of contexts."""
        ...

    @property
    def short_term(self) -> ShortTerm:
        """Working state of contexts."""
        ...

    def memory(self, agent: AgentId | str, *, session_id: str | None = None) -> AgentMemory:
        """What an agent does, did and knows."""
        ...

    @property
    def work(self) -> WorkSignal:
        """Which tenants have work, and when there is new."""
        ...

    def for_owner(self, owner: str, *, memory: MemoryScope = "owner") -> TaskStores:
        """The stores of one owner; for an empty owner the same."""
        ...

    def for_tenant(self, tenant: str) -> TaskStores:
        """The same stores of another tenant."""
        ...

    def elsewhere(self) -> AbstractAsyncContextManager[TaskStores] | None:
        """The same stores with connections of their own, for another thread's event loop.

        ``None`` where there are none to be had, as in memory.
        """
        ...
