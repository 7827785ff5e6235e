"""A fact on its way into long-term memory: checked, and told apart from what was saved before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from holdfast.kernel.core.checks import check_id, check_ids, check_seconds, check_text
from holdfast.kernel.core.codec import encode_json, encode_object
from holdfast.kernel.core.errors import ConflictError, NotFoundError, NotSupportedError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.long_term import check_confidence


@dataclass(frozen=True, slots=True)
class FactDraft:
    """What an engine stores for a fact, before it has an id; ``metadata`` is JSON text.

    >>> draft = draft_fact("low tide", metadata=None, topic="sea", ttl_seconds=60)
    >>> draft.metadata, draft.topic, draft.lifetime
    ('{}', 'sea', datetime.timedelta(seconds=60))
    """

    content: str
    metadata: str
    topic: str
    confidence: float
    source: str
    entities: list[str]
    ttl_seconds: float | None
    supersedes: str | None
    key: str | None

    @property
    def fingerprint(self) -> str:
        """All that was said but the key: two saves with one key must agree in it.

        >>> draft_fact("a", idempotency_key="k").fingerprint == draft_fact("a").fingerprint
        True
        """
        said = [self.content, self.metadata, self.topic, self.confidence, self.source]
        return encode_json([*said, self.entities, self.ttl_seconds, self.supersedes])

    @property
    def lifetime(self) -> timedelta | None:
        """How long it is kept; ``None`` is forever.

        >>> draft_fact("a").lifetime is None
        True
        """
        return None if self.ttl_seconds is None else timedelta(seconds=self.ttl_seconds)


def draft_fact(
    content: object,
    *,
    metadata: Any = None,
    ttl_seconds: object = None,
    topic: object = "",
    confidence: object = 1.0,
    source: object = "",
    supersedes: object = None,
    idempotency_key: object = None,
    entities: object = None,
) -> FactDraft:
    """Check what is to be saved.

    >>> draft_fact("low tide", entities=["zoe"]).entities
    ['zoe']
    """
    return FactDraft(
        content=check_text("content", content),
        metadata=encode_object({} if metadata is None else metadata, field="metadata"),
        topic=check_text("topic", topic),
        confidence=check_confidence("confidence", confidence),
        source=check_text("source", source),
        entities=check_ids("entities", [] if entities is None else entities),
        ttl_seconds=None if ttl_seconds is None else check_seconds("ttl_seconds", ttl_seconds),
        supersedes=None if supersedes is None else check_id("supersedes", supersedes),
        key=None if idempotency_key is None else check_id("idempotency_key", idempotency_key),
    )


def fact_scope(agent_id: AgentId, namespace: object) -> tuple[str, str]:
    """Whose facts: the namespace, and the agent's canonical string.

    >>> fact_scope(AgentId("helper", "ann"), "default")
    ('default', 'helper/ann')
    """
    return check_id("namespace", namespace), str(AgentId.parse(agent_id))


async def check_entities(
    entities: list[str], graph: Graph | None, *, engine: str, store: str
) -> None:
    """What a fact is about must be in the graph; ``engine`` and ``store`` are named in the errors.

    ::

        await check_entities(["zoe"], graph, engine="inmemory", store="InMemoryLongTerm")
    """
    if entities and graph is None:
        raise NotSupportedError(
            engine,
            "memories about entities",
            why=f"configure a graph, as in {store}(engine, graph=…)",
        )
    for entity in entities:
        if graph and not (await graph.get_neighbors(entity, depth=0)).entities:
            raise NotFoundError("entity", entity)


def used_before(id: str, key: str) -> ConflictError:
    """The error of a save whose key stands for another memory.

    >>> str(used_before("m1", "k1"))
    "idempotency key 'k1' was used to save something else"
    """
    return ConflictError("memory", id, f"idempotency key {key!r} was used to save something else")


def superseded_before(id: str, successor: str) -> ConflictError:
    """The error of a save that comes too late to supersede a memory.

    >>> str(superseded_before("m1", "m2"))
    "memory 'm1' is superseded already: supersede 'm2'"
    """
    return ConflictError(
        "memory", id, f"memory {id!r} is superseded already: supersede {successor!r}"
    )
