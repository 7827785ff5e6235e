"""The working state of one session and the facts of one agent, as stores bound to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.contracts.long_term_memory import FactStore
from holdfast.contracts.short_term import ShortTerm
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId
from holdfast.values.states import StateSnapshot


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """The working state: ``ShortTerm`` bound to one session.

    ::

        await memory.state.update({"current_task": "summary"})
    """

    store: ShortTerm
    session_id: str

    async def get(self, *, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the state, or only some of its keys.

        ::

            await memory.state.get(keys=["current_task"])
        """
        return await self.store.get_state(self.session_id, keys=keys)

    async def snapshot(self) -> StateSnapshot:
        """Return the state with its version, for a write that depends on it.

        ::

            seen = await memory.state.snapshot()
        """
        return await self.store.snapshot(self.session_id)

    async def update(
        self,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = (),
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """Merge keys into the state, and return its new version.

        ::

            await memory.state.update({"page": 2}, delete_keys=["draft"])
        """
        return await self.store.update_state(
            self.session_id,
            patch,
            delete_keys=delete_keys,
            expected_version=expected_version,
            ttl_seconds=ttl_seconds,
        )

    async def set(
        self,
        state: dict[str, Any],
        *,
        expected_version: int | None = None,
        ttl_seconds: float | None = None,
    ) -> int:
        """Replace the state, and return its new version.

        ::

            await memory.state.set({"step": 1})
        """
        return await self.store.set_state(
            self.session_id, state, expected_version=expected_version, ttl_seconds=ttl_seconds
        )

    async def clear(self) -> None:
        """Delete the state.

        ::

            await memory.state.clear()
        """
        await self.store.clear(self.session_id)


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What an agent knows across sessions: ``FactStore`` bound to the agent.

    ::

        await memory.facts.save("Ana sails on Sundays", topic="ana")
    """

    store: FactStore
    agent_id: AgentId
    source: str = ""
    """The default source of a fact: the session."""

    async def save(
        self,
        content: str,
        *,
        namespace: str = "default",
        metadata: dict[str, Any] | None = None,
        ttl_seconds: int | None = None,
        topic: str = "",
        confidence: float = 1.0,
        source: str | None = None,
        supersedes: str | None = None,
        idempotency_key: str | None = None,
        entities: list[str] | None = None,
        subject: str | None = None,
    ) -> str:
        """Store a fact, and return its id. Its default source is the session.

        ``subject`` is the id of the person whom it is about, if that is not the owner.

        ::

            await memory.facts.save("Ana sails", topic="ana", idempotency_key="ana-sails")
        """
        return await self.store.save(
            self.agent_id,
            content,
            namespace=namespace,
            metadata=metadata,
            ttl_seconds=ttl_seconds,
            topic=topic,
            confidence=confidence,
            source=self.source if source is None else source,
            supersedes=supersedes,
            idempotency_key=idempotency_key,
            entities=entities,
            subject=subject,
        )

    async def search(
        self,
        query: str,
        *,
        namespace: str = "default",
        limit: int = 10,
        topic: str | None = None,
        min_confidence: float | None = None,
    ) -> list[Memory]:
        """Return the facts that match a query, best first; the newest for an empty query.

        ::

            await memory.facts.search("what does Ana do on Sundays?", limit=3)
        """
        return await self.store.search(
            self.agent_id,
            query,
            namespace=namespace,
            limit=limit,
            topic=topic,
            min_confidence=min_confidence,
        )

    async def get(self, memory_id: str, *, namespace: str = "default") -> Memory | None:
        """Return one fact, or ``None``.

        ::

            await memory.facts.get(fact_id)
        """
        return await self.store.get(self.agent_id, memory_id, namespace=namespace)

    async def delete(self, memory_id: str, *, namespace: str = "default") -> bool:
        """Delete one fact. Returns whether it was there.

        ::

            await memory.facts.delete(fact_id)
        """
        return await self.store.delete(self.agent_id, memory_id, namespace=namespace)

    async def update(
        self,
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
        """Replace a fact by one that supersedes it, and return the id of the new one.

        Arguments that are ``None`` keep the old values, but the source becomes the session, if
        there is one. ::

            newer = await memory.facts.update(fact_id, "Ana sails on Saturdays")
        """
        return await self.store.update(
            self.agent_id,
            memory_id,
            content,
            namespace=namespace,
            metadata=metadata,
            ttl_seconds=ttl_seconds,
            topic=topic,
            confidence=confidence,
            source=(self.source or None) if source is None else source,
            idempotency_key=idempotency_key,
            entities=entities,
        )

    async def namespaces(self, *, limit: int = 100, after: str | None = None) -> list[str]:
        """Return the namespaces in which the agent has facts, in order.

        ::

            print(await memory.facts.namespaces())
        """
        return await self.store.namespaces(self.agent_id, limit=limit, after=after)

    async def list(
        self,
        *,
        namespace: str = "default",
        limit: int = 100,
        after: str | None = None,
        topic: str | None = None,
        min_confidence: float | None = None,
        superseded: bool = False,
    ) -> list[Memory]:
        """Return the facts of a namespace, the newest first.

        ``after`` is the id of the last fact of the previous page.

        ::

            page = await memory.facts.list(topic="ana")
            more = await memory.facts.list(topic="ana", after=page[-1].id)
        """
        return await self.store.list(
            self.agent_id,
            namespace=namespace,
            limit=limit,
            after=after,
            topic=topic,
            min_confidence=min_confidence,
            superseded=superseded,
        )
