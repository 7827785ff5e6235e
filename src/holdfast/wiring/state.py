"""``State``: all stores of one tenant, over shared connections."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.blobs import StoredBlobs
from holdfast.contracts.boards import Boards
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import Checkpoints
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.history import History
from holdfast.contracts.items import Items
from holdfast.contracts.keys import KeyStore
from holdfast.contracts.long_term import LongTerm
from holdfast.contracts.schedules import ScheduleStore
from holdfast.contracts.short_term import States
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.vectors import Vectors
from holdfast.erasure.eraser import Progress
from holdfast.memory.agent_memory import MemoryStores, StoredMemory
from holdfast.runtime.runner import Runner
from holdfast.values.checks import check_absent_id, check_id, check_optional_id, check_unreserved
from holdfast.values.deprecation import warn_deprecated
from holdfast.values.erasure import ErasureReport
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.identity import Agent
from holdfast.values.owners import MemoryScope
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import WIRINGS, providers
from holdfast.wiring.erasure import eraser_of, erasure_scope
from holdfast.wiring.ops import Ops
from holdfast.wiring.sealing import is_refused, refused
from holdfast.wiring.stores import Stores, stores_of_nobody, stores_of_owner
from holdfast.wiring.telemetry import Tracing

T = TypeVar("T")
_OPERATORS = frozenset(
    {
        *("assign_context", "elsewhere", "embed_pending", "health", "hybrid"),
        *("pending_events", "work"),
    }
)
"""Attributes that have moved to ``ops``."""


class State:
    """The stores of a tenant, one attribute per contract; ``holdfast.open()`` returns it.

    ::

        async with holdfast.open("memory:") as state:
            await state.history.append(agent, ChatMessage.user("hello"), session_id="s1")
    """

    def __init__(
        self,
        connections: Connections,
        tenant: str,
        *,
        owns: bool = True,
        owner: str | None = None,
        memory: MemoryScope = "owner",
        confined: bool = False,
        stores: Stores | None = None,
    ) -> None:
        self._connections = connections
        self._confined = confined
        self._owns = owns
        self._tenant = check_id("tenant", tenant)
        self._owner = check_absent_id("owner", owner)
        self._scoped = owner is not None
        self._memory: MemoryScope = memory
        # A view of an owner is made of the tenant's stores, which are made once.
        self._tenant_stores = self._stores = stores or connections.stores(self._tenant)
        if owner:
            self._stores = stores_of_owner(self._stores, owner, memory=memory)
        elif self._scoped:
            self._stores = stores_of_nobody(self._stores, memory=memory)

    def __repr__(self) -> str:
        engines = ", ".join(sorted(set(self.engines.values())))
        owned = f" owner={self._owner!r}" if self._owner else ""
        return f"<State tenant={self._tenant!r}{owned} on {engines}>"

    @property
    def tenant(self) -> str:
        """The tenant whose data the state reads and writes."""
        return self._tenant

    @property
    def owner(self) -> str:
        """The owner whose data this view has; empty for the state of the whole tenant."""
        return self._owner

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the state was opened on; its stores must be used on it."""
        return self._connections.loop

    @property
    def engines(self) -> dict[str, str]:
        """The engine name by attribute."""
        return self._connections.engines

    @property
    def blobs(self) -> StoredBlobs:
        """Large binary objects, by ref."""
        return self._served("blobs", self._open.blobs)

    @property
    def history(self) -> History:
        """Transcripts, by agent and session."""
        return self._served("history", self._open.history)

    @property
    def vectors(self) -> Vectors:
        """Documents, searched by meaning."""
        return self._served("vectors", self._open.vectors)

    @property
    def graph(self) -> KnowledgeGraph:
        """Entities and their relationships."""
        return self._served("graph", self._open.graph)

    @property
    def short_term(self) -> States:
        """Working state, by session."""
        return self._served("short_term", self._open.short_term)

    @property
    def long_term(self) -> LongTerm:
        """Facts, by agent and namespace."""
        return self._served("long_term", self._open.long_term)

    @property
    def boards(self) -> Boards:
        """To-do boards, by conversation and agent."""
        return self._served("boards", self._open.boards)

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints of graphs, by thread."""
        return self._served("checkpoints", self._open.checkpoints)

    @property
    def items(self) -> Items:
        """JSON objects, by namespace and key."""
        return self._served("items", self._open.items)

    @property
    def tasks(self) -> TaskLedger:
        """Durable tasks, with their messages, artifacts and contexts."""
        return self._served("tasks", self._open.tasks)

    @property
    def schedules(self) -> ScheduleStore:
        """Schedules, which submit tasks at the ticks of cron expressions."""
        return self._served("schedules", self._open.schedules)

    @property
    def episodes(self) -> EpisodicMemory:
        """The session log, recalled by time and by meaning."""
        return self._served("episodes", self._open.episodes)

    @property
    def keys(self) -> KeyStore:
        """API keys of a service, by tenant and owner."""
        self._refuse_confined("keys")
        return self._served("keys", self._open.keys)

    @property
    def ops(self) -> Ops:
        """Calls for operators and workers: health, connections, queues, backlog."""
        self._refuse_confined("ops")
        return Ops(self, self._connections, self._refuse_owner)

    @property
    def runner(self) -> type[Runner]:
        """The class with which a worker runs handlers; with telemetry, it traces them."""
        return Runner if self.tracing is None else self.tracing.runner

    @property
    def tracing(self) -> Tracing | None:
        """What traces calls, handlers and requests; ``None`` without telemetry."""
        return self._connections.tracing

    def memory(self, agent: Agent, *, session_id: str | None = None) -> AgentMemory:
        """Return an agent's memory: working state, session log and facts.

        Without ``session_id`` it covers all sessions of the agent.

        ::

            memory = state.memory("planner/a1", session_id="s1")
            await memory.record("decision", {"use": "postgres"})
            woken = await memory.hydrate("which database did we choose?")
        """
        stores = self._open
        return StoredMemory(
            MemoryStores(
                episodes=self._served("memory", stores.episodes or stores.memory_log),
                short_term=self._served("memory", stores.short_term),
                wakes=self._served("memory", stores.wakes),
                long_term=stores.long_term,
                query_words=self._connections.limits.query_words,
            ),
            agent,
            session_id=session_id,
        )

    def channel(self, name: str) -> Channel:
        """Return a named stream of events between agents.

        ::

            await state.channel("alerts").publish({"level": "high"})
        """
        found = self._served("channel", self._open.channel)(check_id("name", name))
        found.use_limits(self._connections.limits)
        return found

    def for_tenant(self, tenant: str) -> State:
        """Return a view for another tenant over the same connections; only this state closes them.

        ::

            acme = state.for_tenant("acme")
        """
        self._connections.check_usable()
        self._refuse_confined("for_tenant")
        self._refuse_owner("for_tenant")
        return State(self._connections, tenant, owns=False)

    def confined(self) -> State:
        """Return a view for tools and other code that needs this tenant and nothing beyond it.

        It has no ``for_tenant``, ``ops``, ``keys`` and ``erase``, and cannot close the connections.
        The views that ``for_owner`` makes of it do not have them either. ::

            tools = state.for_tenant("acme").confined()
        """
        self._connections.check_usable()
        if self._confined:
            return self
        return State(
            self._connections,
            self._tenant,
            owns=False,
            owner=self._owner if self._scoped else None,
            memory=self._memory,
            confined=True,
            stores=self._tenant_stores,
        )

    def for_owner(self, owner: str, *, memory: MemoryScope = "owner") -> State:
        """Return a view for one owner of this tenant: tasks, sessions, memory, facts, documents.

        No other owner can read what it stores, whatever ids they use; nor can the state without an
        owner. With ``memory="shared"`` all owners share facts, recall, the graph and documents;
        sessions, states, boards, threads, items and channels stay separate. With an empty owner the
        view has the data that belongs to no owner. Every view refuses stored ids, which begin with
        ``holdfast.``. A view cannot be widened: one without shared memory raises for
        ``memory="shared"``. ::

            ana = state.for_owner("ana")
            await ana.history.append(agent, ChatMessage.user("hello"), session_id="s1")
        """
        self._connections.check_usable()
        if memory not in ("owner", "shared"):
            raise InvalidInputError("memory", f"must be 'owner' or 'shared', not {memory!r}")
        owner = check_unreserved("owner", check_optional_id("owner", owner))
        if owner not in ("", self._owner):
            self._refuse_owner("for_owner")
        elif self._owner and memory == "shared" and self._memory != "shared":
            self._refuse_owner("a shared memory")
        elif self._scoped and (not owner or memory == self._memory):
            return self
        return State(
            self._connections,
            self._tenant,
            owns=False,
            owner=owner,
            memory=memory,
            confined=self._confined,
            stores=self._tenant_stores,
        )

    async def erase(
        self,
        *,
        tenant: str | None = None,
        subject: str | None = None,
        agent: Agent | None = None,
        session: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ErasureReport:
        """Delete all data of one scope in every store, and return the report with a receipt.

        The scope is one of these. ``tenant``: everything; repeat the tenant's name. ``subject``: an
        owner, with tasks, sessions, memory, API keys, and blobs that have this subject. ``agent``:
        its events, facts, boards and tasks. ``session``: log, state, tasks, boards and checkpoints
        under its id. An agent or a session of an owner is named together with ``subject``.

        ``dry_run`` only counts. If the process dies, call it again to continue. ``progress`` is
        called with a store and how many of its records were deleted. ::

            report = await state.erase(subject="ana")
            print(report.counts, report.receipt)
        """
        self._refuse_confined("erase")
        self._refuse_owner("erase")
        scope = erasure_scope(
            self._tenant, tenant=tenant, subject=subject, agent=agent, session=session
        )
        eraser = eraser_of(self._connections, self._open, self._tenant)
        if dry_run:
            return ErasureReport(await eraser.count(scope))
        if scope.kind in ("tenant", "subject") and self._open.blobs is not None:
            # No store lists expired blobs, but their bytes are still there.
            await self._open.blobs.sweep()
        return await eraser.erase(scope, progress)

    async def aclose(self) -> None:
        """Close the connections. A second call, or a call on a view, has no effect.

        ::

            await state.aclose()
        """
        if self._owns and not self._connections.closed:
            self._connections.check_usable()
            self._connections.closed = True
            await self._connections.close()

    if not TYPE_CHECKING:  # hidden, so that a type checker reports the old names

        def __getattr__(self, name: str) -> object:
            """Return an attribute that has moved to ``ops``, with a ``DeprecationWarning``."""
            if name not in _OPERATORS:
                raise AttributeError(f"'State' object has no attribute {name!r}")
            warn_deprecated(f"state.{name}", f"state.ops.{name}")
            return getattr(self.ops, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _refuse_confined(self, attribute: str) -> None:
        """Raise if this view is confined to its tenant."""
        if self._confined:
            raise NotSupportedError(
                " and ".join(sorted(set(self.engines.values()))),
                f"{attribute} for one tenant",
                why="this view is confined: use the state that it was made of",
            )

    def _refuse_owner(self, attribute: str) -> None:
        """Raise if this is the view of one owner: the attribute would reach beyond it."""
        if self._scoped:
            raise NotSupportedError(
                " and ".join(sorted(set(self.engines.values()))),
                f"{attribute} for one owner",
                why="it is not divided by owner: use the state that the view was made of",
            )

    def _served(self, attribute: str, store: T | None) -> T:
        if self._connections.provider is not None and is_refused(attribute):
            raise refused(attribute)
        if store is None:
            self._refuse_owner(attribute)
            raise NotSupportedError(
                " and ".join(sorted(set(self.engines.values()))),
                attribute,
                why=f"{providers(attribute)}, as in {WIRINGS}",
            )
        return store

    @property
    def _open(self) -> Stores:
        self._connections.check_usable()
        return self._stores
