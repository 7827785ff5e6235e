"""The part of a ``State`` that the runtime uses: stores of one tenant, and access to others."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.blobs import Blobs
from holdfast.contracts.boards import TaskStore
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import Graph
from holdfast.contracts.history import History
from holdfast.contracts.items import ItemStore
from holdfast.contracts.long_term import LongTerm
from holdfast.contracts.schedules import ScheduleStore
from holdfast.contracts.short_term import ShortTerm
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.tasks.work import WorkSignal
from holdfast.contracts.vectors import VectorStore
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent
from holdfast.values.owners import MemoryScope

if TYPE_CHECKING:
    from holdfast.runtime.runner import Runner


class WorkerOps(Protocol):
    """The part of ``state.ops`` that a worker uses."""

    @property
    def work(self) -> WorkSignal:
        """Lists the tenants that have work, and signals new work."""
        ...

    def elsewhere(self) -> AbstractAsyncContextManager[TaskStores] | None:
        """Open the same stores on separate connections, for the event loop of another thread.

        ``None`` if the engine has no connections, as the in-memory one.
        """
        ...


class TaskStores(Protocol):
    """The stores that handlers and workers use; ``holdfast.State`` is one."""

    @property
    def tenant(self) -> str:
        """The tenant that the stores belong to."""
        ...

    @property
    def tasks(self) -> TaskLedger:
        """The task ledger."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """Schedules of tasks."""
        ...

    @property
    def blobs(self) -> Blobs:
        """Blobs: files and large results."""
        ...

    @property
    def history(self) -> History:
        """Transcripts of handlers."""
        ...

    @property
    def episodes(self) -> EpisodicMemory:
        """The session logs of contexts."""
        ...

    @property
    def vectors(self) -> VectorStore:
        """Documents, searched by meaning."""
        ...

    @property
    def graph(self) -> Graph:
        """Entities and their relationships."""
        ...

    @property
    def long_term(self) -> LongTerm:
        """Facts."""
        ...

    @property
    def boards(self) -> TaskStore:
        """To-do boards."""
        ...

    @property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of graphs."""
        ...

    @property
    def items(self) -> ItemStore:
        """JSON objects, by namespace and key."""
        ...

    def channel(self, name: str) -> Channel:
        """A named stream of events."""
        ...

    @property
    def short_term(self) -> ShortTerm:
        """Working state of contexts."""
        ...

    def memory(self, agent: Agent, *, session_id: str | None = None) -> AgentMemory:
        """The memory of an agent: working state, session log and facts."""
        ...

    @property
    def ops(self) -> WorkerOps:
        """Operations that workers need in addition to the stores."""
        ...

    @property
    def runner(self) -> type[Runner]:
        """The class with which a worker runs handlers."""
        ...

    def for_owner(self, owner: str, *, memory: MemoryScope = "owner") -> TaskStores:
        """The stores of one owner."""
        ...

    def for_tenant(self, tenant: str) -> TaskStores:
        """The stores of another tenant, over the same connections."""
        ...


class HandlerStores:
    """Every store of a task's tenant and owner.

    It has no methods that open or close stores or that reach other tenants and owners. A handler
    may run again: write with explicit ids, or inside a step. ::

        await task.stores.graph.add_entities([Entity("Person", {"name": "Ana"}, "ana")])
        await task.stores.channel("alerts").publish({"done": task.id}, id=task.id)
    """

    def __init__(self, stores: TaskStores) -> None:
        self._stores = stores

    @property
    def blobs(self) -> Blobs:
        """Large binary objects, by ref.

        ::

            ref = await task.stores.blobs.store(pages[0])
        """
        return self._stores.blobs

    @property
    def history(self) -> History:
        """Transcripts, by agent and session.

        ::

            messages = await task.stores.history.get_messages("planner", session_id="s1")
        """
        return self._stores.history

    @property
    def episodes(self) -> EpisodicMemory:
        """The session log, recalled by time and by meaning.

        ::

            events = await task.stores.episodes.recent("planner", limit=50)
        """
        return self._stores.episodes

    @property
    def short_term(self) -> ShortTerm:
        """Working state, by session.

        ::

            await task.stores.short_term.update_state("s1", {"page": 2})
        """
        return self._stores.short_term

    @property
    def long_term(self) -> LongTerm:
        """Facts, by agent and namespace.

        ::

            facts = await task.stores.long_term.search("planner", "what does Ana sail?")
        """
        return self._stores.long_term

    @property
    def vectors(self) -> VectorStore:
        """Documents, searched by meaning.

        ::

            found = await task.stores.vectors.get(["d1"], collection="notes")
        """
        return self._stores.vectors

    @property
    def graph(self) -> Graph:
        """Entities and their relationships.

        ::

            around = await task.stores.graph.get_neighbors("ana", depth=2)
        """
        return self._stores.graph

    @property
    def boards(self) -> TaskStore:
        """To-do boards, by conversation and agent.

        ::

            board = await task.stores.boards.get_by_conversation(task.session_id)
        """
        return self._stores.boards

    @property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of graphs, by thread.

        ::

            newest = await task.stores.checkpoints.get(task.session_id)
        """
        return self._stores.checkpoints

    @property
    def items(self) -> ItemStore:
        """JSON objects, by namespace and key.

        ::

            notes = await task.stores.items.search(("notes",), filter={"kind": "todo"})
        """
        return self._stores.items

    def channel(self, name: str) -> Channel:
        """A named stream of events between agents.

        ::

            await task.stores.channel("alerts").publish({"level": "high"}, id=task.id)
        """
        return self._stores.channel(name)

    def memory(self, agent: Agent, *, session_id: str | None = None) -> AgentMemory:
        """The memory of another agent of the same owner.

        ::

            hits = await task.stores.memory("planner").recall("which database?")
        """
        return self._stores.memory(agent, session_id=session_id)


def check_state(state: object) -> None:
    """Raise ``InvalidInputError`` if a URL or a path was passed as a state.

    ::

        check_state(state)
    """
    if isinstance(state, (str, os.PathLike)):
        raise InvalidInputError(
            "state",
            f"must be an open State, not {type(state).__name__}: "
            "`async with holdfast.open(url) as state:`",
        )


def check_stores(stores: TaskStores) -> None:
    """Raise ``NotSupportedError`` if the engines lack a store that every task needs.

    ::

        check_stores(state)
    """
    _ = stores.tasks, stores.blobs, stores.history, stores.episodes, stores.short_term
    _ = stores.ops.work
