"""Random facts made of few words, saved again, superseded, and left to expire."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId

AGENTS = st.sampled_from([AgentId("helper", "ann"), AgentId("", "ben")])
NAMESPACES = st.sampled_from(["default", "n2"])
TEXTS = st.lists(st.sampled_from(["tide", "moon", "salt", "rock"]), max_size=4).map(" ".join)
SAVES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.sampled_from([{}, {"a": [1, None]}]),
        "ttl_seconds": st.sampled_from([10, 60]),
        "topic": st.sampled_from(["t1", "t2"]),
        "confidence": st.sampled_from([0.25, 0.5]),
        "source": st.just("s1"),
        "idempotency_key": st.sampled_from(["k1", "k2"]),
        "subject": st.sampled_from(["ana", "ben"]),
    },
)
NARROWS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.integers(0, 4),
        "topic": st.sampled_from(["", "t1"]),
        "min_confidence": st.sampled_from([0.5, 0.75]),
    },
)


def _seen(memory: Memory | None) -> Any:
    """A memory without the ids and times that differ between two engines."""
    return memory and (
        memory.content,
        round(memory.score, 9),
        memory.metadata,
        (memory.topic, memory.confidence, memory.source, memory.found_by, memory.degraded),
        memory.subject,
        memory.superseded_by is None,
        memory.expires_at is None,
    )


class LongTermMachine(EngineMachine):
    """Memories that are saved, found, superseded, deleted and left to expire, in mode text."""

    contract = "long_term"

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[tuple[Any, Any]] = [("nobody", "nobody")]

    def _pair(self, at: int) -> tuple[Any, Any]:
        """The ids that the two sides gave to one of the last memories."""
        return self.ids[-1 - at % min(6, len(self.ids))]

    @rule(agent=AGENTS, namespace=NAMESPACES, content=TEXTS, options=SAVES)
    def save(self, agent: AgentId, namespace: str, content: str, options: dict[str, Any]) -> None:
        """A new memory, or the same again."""

        async def save(store: Any) -> Any:
            return await store.save(agent, content, namespace=namespace, **options)

        pair = self.each(save, save, view=lambda _: None)
        if isinstance(pair[0], str):
            self.ids.append(pair)

    @precondition(lambda self: len(self.ids) > 1)
    @rule(agent=AGENTS, namespace=NAMESPACES, content=TEXTS, at=st.integers(0, 5))
    def supersede(self, agent: AgentId, namespace: str, content: str, at: int) -> None:
        """A memory in place of another."""
        left, right = (
            lambda store, old=old: store.save(agent, content, namespace=namespace, supersedes=old)
            for old in self._pair(at)
        )
        pair = self.each(left, right, view=lambda _: None)
        if isinstance(pair[0], str):
            self.ids.append(pair)

    @precondition(lambda self: len(self.ids) > 1)
    @rule(agent=AGENTS, namespace=NAMESPACES, content=TEXTS, at=st.integers(0, 5), options=SAVES)
    def update(
        self, agent: AgentId, namespace: str, content: str, at: int, options: dict[str, Any]
    ) -> None:
        """A memory in place of another, with some of its fields and its subject."""
        options = {name: value for name, value in options.items() if name != "subject"}
        left, right = (
            lambda store, old=old: store.update(agent, old, content, namespace=namespace, **options)
            for old in self._pair(at)
        )
        pair = self.each(left, right, view=lambda _: None)
        if isinstance(pair[0], str):
            self.ids.append(pair)

    @rule(
        agent=AGENTS,
        namespace=NAMESPACES,
        at=st.none() | st.integers(0, 5),
        superseded=st.booleans(),
        options=NARROWS,
    )
    def list_page(
        self,
        agent: AgentId,
        namespace: str,
        at: int | None,
        superseded: bool,
        options: dict[str, Any],
    ) -> None:
        """A page, from the newest or after one of the last memories, there or not."""
        left, right = (
            lambda store, after=after: store.list(
                agent, namespace=namespace, after=after, superseded=superseded, **options
            )
            for after in ((None, None) if at is None else self._pair(at))
        )
        self.each(left, right, lambda found: [_seen(memory) for memory in found])

    @rule(agent=AGENTS, limit=st.integers(0, 2), after=st.sampled_from([None, "default", "n2"]))
    def namespaces(self, agent: AgentId, limit: int, after: str | None) -> None:
        """Where an agent has memories."""
        self.both(lambda store: store.namespaces(agent, limit=limit, after=after))

    @rule(agent=AGENTS, namespace=NAMESPACES, query=TEXTS, options=NARROWS)
    def search(self, agent: AgentId, namespace: str, query: str, options: dict[str, Any]) -> None:
        """By words, or the most recent."""
        self.both(
            lambda store: store.search(agent, query, namespace=namespace, **options),
            lambda found: [_seen(memory) for memory in found],
        )

    @rule(agent=AGENTS, namespace=NAMESPACES, at=st.integers(0, 5))
    def get(self, agent: AgentId, namespace: str, at: int) -> None:
        """By id."""
        left, right = (
            lambda store, one=one: store.get(agent, one, namespace=namespace)
            for one in self._pair(at)
        )
        self.each(left, right, _seen)

    @rule(agent=AGENTS, namespace=NAMESPACES, at=st.integers(0, 5))
    def delete(self, agent: AgentId, namespace: str, at: int) -> None:
        """By id."""
        left, right = (
            lambda store, one=one: store.delete(agent, one, namespace=namespace)
            for one in self._pair(at)
        )
        self.each(left, right)

    @rule(agent=AGENTS, namespace=NAMESPACES)
    def clear(self, agent: AgentId, namespace: str) -> None:
        """All of a scope."""
        self.both(lambda store: store.clear(agent, namespace=namespace))

    @rule(seconds=st.sampled_from([1, 9, 10, 50]))
    def wait(self, seconds: int) -> None:
        """Let memories expire."""
        self.elapse(seconds)
