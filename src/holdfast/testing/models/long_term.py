"""A naive ``LongTermMemory`` in mode text: a list of memories, and BM25 as the textbook has it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.facts import Memory


class NaiveLongTerm:
    """A row is a scope, a memory, and the key and the words it was saved with.

    The state machine's words are their own stems and no stop words, so that a text is split at its
    spaces.
    """

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.shared = shared
        self.tenant = tenant
        self.rows = shared.table("long_term")

    def _scope(self, agent_id: Any, namespace: str) -> tuple[str, str, str]:
        return self.tenant, namespace, str(agent_id)

    def _all(self, scope: Any) -> list[list[Any]]:
        return [
            row
            for row in self.rows
            if row[0] == scope
            and (row[1].expires_at is None or row[1].expires_at > self.shared.now)
        ]

    def _find(self, scope: Any, memory_id: str) -> list[Any] | None:
        for row in self._all(scope):
            if row[1].id == memory_id:
                return row
        return None

    async def save(
        self,
        agent_id: Any,
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
        subject: str = "",
    ) -> str:
        """A row at the end."""
        scope = self._scope(agent_id, namespace)
        said = (
            content,
            metadata or {},
            ttl_seconds,
            topic,
            confidence,
            source,
            supersedes,
            subject,
        )
        earlier = self._earlier(scope, idempotency_key, said)
        if earlier is not None:
            return earlier
        expires_at = None
        if ttl_seconds is not None:
            expires_at = self.shared.now + timedelta(seconds=ttl_seconds)
        memory = Memory(
            content,
            1.0,
            f"naive-{len(self.rows)}",
            copy.deepcopy(metadata or {}),
            topic=topic,
            confidence=confidence,
            source=source,
            created_at=self.shared.now,
            expires_at=expires_at,
            subject=subject,
        )
        if supersedes is not None:
            self._supersede(scope, supersedes, memory.id)
        self.rows.append([scope, memory, idempotency_key, said])
        return memory.id

    async def update(
        self,
        agent_id: Any,
        memory_id: str,
        content: str,
        *,
        namespace: str = "default",
        ttl_seconds: int | None = None,
        idempotency_key: str | None = None,
        **changes: Any,
    ) -> str:
        """A row at the end, as the old one but for what changes."""
        scope = self._scope(agent_id, namespace)
        said = ("update", memory_id, content, ttl_seconds, tuple(sorted(changes.items(), key=str)))
        earlier = self._earlier(scope, idempotency_key, said)
        if earlier is not None:
            return earlier
        old = self._supersede(scope, memory_id, f"naive-{len(self.rows)}")
        memory = replace(
            copy.deepcopy(old), content=content, id=f"naive-{len(self.rows)}", **changes
        )
        memory = replace(memory, created_at=self.shared.now, superseded_by=None)
        if ttl_seconds is not None:
            memory = replace(memory, expires_at=self.shared.now + timedelta(seconds=ttl_seconds))
        self.rows.append([scope, memory, idempotency_key, said])
        return memory.id

    def _earlier(self, scope: Any, key: str | None, said: Any) -> str | None:
        for row in self._all(scope):
            if key is not None and row[2] == key:
                if row[3] != said:
                    raise ConflictError("memory", row[1].id)
                return str(row[1].id)
        return None

    def _supersede(self, scope: Any, memory_id: str, by: str) -> Memory:
        row = self._find(scope, memory_id)
        if row is None:
            raise NotFoundError("memory", memory_id)
        old: Memory = row[1]
        if old.superseded_by is not None:
            raise ConflictError("memory", memory_id)
        row[1] = replace(old, superseded_by=by)
        return old

    async def search(
        self,
        agent_id: Any,
        query: str,
        *,
        namespace: str = "default",
        limit: int = 10,
        topic: str | None = None,
        min_confidence: float | None = None,
    ) -> list[Memory]:
        """Every memory is scored, and then most are left out."""
        newest = [row[1] for row in self._all(self._scope(agent_id, namespace))][::-1]
        live = [memory for memory in newest if memory.superseded_by is None]
        wanted = [
            memory
            for memory in live
            if (topic is None or memory.topic == topic)
            and (min_confidence is None or memory.confidence >= min_confidence)
        ]
        if not query:
            found = [replace(memory, found_by=("recent",)) for memory in wanted]
        else:
            scored = [(memory, _bm25(query, memory, live)) for memory in wanted]
            best = max([score for _, score in scored], default=0.0)
            found = [
                replace(memory, score=score / best, found_by=("text",))
                for memory, score in scored
                if score > 0
            ]
            found.sort(key=lambda memory: memory.score, reverse=True)
        return copy.deepcopy(found[:limit])

    async def get(
        self, agent_id: Any, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """The row with this id."""
        row = self._find(self._scope(agent_id, namespace), memory_id)
        return copy.deepcopy(row[1]) if row else None

    async def delete(self, agent_id: Any, memory_id: str, *, namespace: str = "default") -> bool:
        """The row with this id loses its scope, and so is nobody's."""
        row = self._find(self._scope(agent_id, namespace), memory_id)
        if row:
            row[0] = None
        return row is not None

    async def clear(self, agent_id: Any, *, namespace: str = "default") -> None:
        """The same for all rows of a scope."""
        for row in self._all(self._scope(agent_id, namespace)):
            row[0] = None

    async def namespaces(
        self, agent_id: Any, *, limit: int = 100, after: str | None = None
    ) -> list[str]:
        """Of all rows that are somebody's."""
        known = {row[0][1] for row in self.rows if row[0] is not None}
        mine = [name for name in known if self._all(self._scope(agent_id, name))]
        return sorted(name for name in mine if after is None or name > after)[:limit]

    async def list(
        self,
        agent_id: Any,
        *,
        namespace: str = "default",
        limit: int = 100,
        after: str | None = None,
        topic: str | None = None,
        min_confidence: float | None = None,
        superseded: bool = False,
    ) -> list[Memory]:
        """The rows before one, backwards; also those of a row that is nobody's any more."""
        places = [at for at, row in enumerate(self.rows) if row[1].id == after]
        before = self.rows[: places[0]] if places else self.rows
        mine = self._all(self._scope(agent_id, namespace))
        found = [row[1] for row in before if any(row is one for one in mine)][::-1]
        return copy.deepcopy(
            [
                memory
                for memory in found
                if (superseded or memory.superseded_by is None)
                and (topic is None or memory.topic == topic)
                and (min_confidence is None or memory.confidence >= min_confidence)
            ][:limit]
        )


def _bm25(query: str, memory: Memory, live: list[Memory]) -> float:
    words = memory.content.split()
    texts = [other.content.split() for other in live]
    average = sum(len(text) for text in texts) / len(texts)
    total = 0.0
    for word in dict.fromkeys(query.split()):
        holding = sum(word in text for text in texts)
        times = words.count(word)
        rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        length = 1 - 0.4 + 0.4 * len(words) / average if average else 1.0
        total += rarity * times * 1.9 / (times + 0.9 * length)
    return total
