"""The interfaces of long-term memory: facts that an agent keeps across sessions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, runtime_checkable

from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId


@runtime_checkable
class LongTermMemory(Protocol):
    """Facts of an agent in a namespace, kept across sessions and recalled by a query.

    A store recalls in one of four modes, chosen when it is created. ``text`` ranks by words, with
    no model. ``vector`` ranks by the cosine similarity of embeddings. ``graph`` recalls what is
    linked to the entities that a query names, and to their neighbours. ``hybrid`` combines all of
    these that are configured.

    Promises:

    - a memory comes back as it was saved
    - each save is a memory of its own
    - a memory says when it was saved and when it expires
    - get of an unknown memory is none
    - metadata comes back exactly as it went in
    - content is any text, the empty one included
    - topic, confidence and source are kept
    - a memory has the subject that it was saved with
    - a subject that is not an id is refused and nothing is saved
    - a confidence outside of 0 to 1 is refused
    - a search finds memories that hold any word of the query
    - a memory with more of the query's words comes first
    - a rare word of the query weighs more than a common one
    - words match by their stem, whatever their case
    - the language decides how words are stemmed
    - the score lies between 0 and 1, the best first
    - memories of the same score are ordered from new to old
    - an empty query returns the most recent first
    - a search limit of zero is an empty result
    - a search limit below zero is refused
    - a search never returns more than its limit
    - topic narrows a search
    - min_confidence narrows a search
    - a memory without ttl_seconds never expires
    - a memory expires when its ttl_seconds have passed
    - a ttl_seconds of zero or less is refused
    - a superseded memory is left out of search
    - a superseded memory is still returned by get, with what superseded it
    - superseding an unknown memory is refused and nothing is written
    - superseding a superseded memory is a conflict and nothing is written
    - of concurrent saves that supersede the same memory one wins
    - a memory stays superseded when what superseded it is deleted
    - a save with the same idempotency_key and content gives the same id
    - a save with the same idempotency_key and other content is a conflict
    - an idempotency_key is free again when its memory is gone
    - concurrent saves with the same idempotency_key are one memory
    - delete removes a memory and says whether it was there
    - clear removes the memories of one scope
    - clear is idempotent
    - one namespace never sees another's memories
    - one agent never sees another's memories
    - one tenant never sees another's memories
    - an agent is the same by its id and by its text
    - concurrent saves are all kept
    - an agent, a namespace or an id that is not an id is refused
    - a save that is refused writes nothing
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - memories are still there after a reopen
    - a store recalls by text unless it has an embedder or a graph, and then hybrid
    - an unknown mode is refused with the known ones
    - a result says which arms found it
    - a vector search returns the nearest by meaning first
    - a vector search without an embedder is not supported, and the error says how to configure one
    - a vector search with the embedder down is an engine error
    - a hybrid search fuses words and meaning
    - a hybrid search with the embedder down answers from full text and says so
    - a save is durable before it is embedded
    - what the embedder missed is embedded by a later search
    - a memory is embedded once
    - a change of embedder embeds again
    - a text that the embedder cannot take never blocks its neighbours
    - a query that names an entity recalls its memories
    - an entity is recognised by its name whatever the case
    - the memories of neighbours come after those of the entity
    - a query that names no entity recalls nothing from the graph
    - a hybrid search adds what the graph knows
    - entities that are not in the graph are refused and nothing is written
    - entities without a graph are not supported, and the error says how to configure one
    - a graph search without a graph is not supported, and the error says how to configure one
    - every mode leaves out the superseded, the expired and the deleted
    - every mode scores between 0 and 1
    """

    @abstractmethod
    async def save(
        self,
        agent_id: AgentId,
        content: str,
        *,
        namespace: str = "default",
        metadata: dict[str, Any] | None = None,
        ttl_seconds: int | None = None,
        topic: str = "",
        confidence: float = 1.0,
        source: str = "",
        supersedes: str | None = None,
        idempotency_key: str | None = None,
        entities: list[str] | None = None,
        subject: str | None = None,
    ) -> str:
        """Store a fact, and return its id.

        ``supersedes`` names the memory that this one replaces. ``entities`` are ids of the graph.
        ``subject`` is the id of the person whom it is about, if that is not its owner:
        ``state.erase(subject=)`` deletes it. With an ``idempotency_key``, a retry of the same save
        returns the same memory.

        ::

            id = await memory.save(agent, "Ravi prefers Python", topic="tools", source="s1")
        """
        ...

    @abstractmethod
    async def search(
        self,
        agent_id: AgentId,
        query: str,
        *,
        namespace: str = "default",
        limit: int = 10,
        topic: str | None = None,
        min_confidence: float | None = None,
    ) -> list[Memory]:
        """Return the memories that match a query, best first; the newest for an empty query.

        ::

            found = await memory.search(agent, "which language does Ravi like?", limit=3)
        """
        ...

    @abstractmethod
    async def get(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """Return one memory, superseded or not; ``None`` if it is not there or has expired.

        ::

            memory = await long_term.get(agent, id)
        """
        ...

    @abstractmethod
    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        """Delete one memory. Returns whether it was there.

        ::

            await memory.delete(agent, id)
        """
        ...

    @abstractmethod
    async def clear(self, agent_id: AgentId, *, namespace: str = "default") -> None:
        """Delete all memories of an agent in a namespace.

        ::

            await memory.clear(agent, namespace="drafts")
        """
        ...


@runtime_checkable
class FactStore(LongTermMemory, Protocol):
    """Facts that can also be listed and updated.

    Promises:

    - list returns memories from new to old
    - list goes on after the id of the last memory, even when that memory is gone
    - topic and min_confidence narrow a list
    - list leaves out superseded memories unless it is asked for them
    - a list limit of zero is an empty result
    - a list limit below zero is refused
    - an update supersedes a memory and keeps what it does not change
    - an update keeps the subject
    - an updated memory expires when the old one would have, unless ttl_seconds is given
    - updating an unknown memory is refused and nothing is written
    - updating a superseded memory is a conflict and nothing is written
    - of concurrent updates of the same memory one wins
    - an update with the same idempotency_key and changes gives the same id
    - an update with the same idempotency_key and other changes is a conflict
    - namespaces are those where the agent has memories, by code points
    - a limit and after select a page of the namespaces
    """

    @abstractmethod
    async def update(
        self,
        agent_id: AgentId,
        memory_id: str,
        content: str,
        *,
        namespace: str = "default",
        metadata: dict[str, Any] | None = None,
        ttl_seconds: int | None = None,
        topic: str | None = None,
        confidence: float | None = None,
        source: str | None = None,
        idempotency_key: str | None = None,
        entities: list[str] | None = None,
    ) -> str:
        """Replace a memory by one that supersedes it, and return the id of the new one.

        Arguments that are ``None`` keep the old values; the time of expiry stays, too. The old
        memory is still returned by ``get``. With an ``idempotency_key``, a retry returns the same
        memory; without one, it raises ``ConflictError``, which names the memory that superseded the
        old one. ::

            newer = await memory.update(agent, id, "Ravi prefers Rust by now")
        """
        ...

    @abstractmethod
    async def namespaces(
        self, agent_id: AgentId, *, limit: int = 100, after: str | None = None
    ) -> list[str]:
        """Return the namespaces in which an agent has memories, in order.

        ``after`` is the last one of the previous page. ::

            for namespace in await memory.namespaces(agent):
                print(namespace)
        """
        ...

    @abstractmethod
    async def list(
        self,
        agent_id: AgentId,
        *,
        namespace: str = "default",
        limit: int = 100,
        after: str | None = None,
        topic: str | None = None,
        min_confidence: float | None = None,
        superseded: bool = False,
    ) -> list[Memory]:
        """Return the memories of a namespace, the newest first.

        ``after`` is the id of the last memory of the previous page. ``superseded=True`` returns
        those that were superseded, too. ::

            page = await memory.list(agent, topic="tools")
            more = await memory.list(agent, topic="tools", after=page[-1].id)
        """
        ...
