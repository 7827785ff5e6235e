"""What is found out about a query before the facts are looked at, the same for every engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.kernel.core.errors import HoldfastError, NotSupportedError
from holdfast.kernel.core.text import check_language, names_in
from holdfast.kernel.storage.embedding import Embedder, embed_texts
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.long_term import RecallMode, check_mode

NEIGHBOUR = 0.5
"""What a memory of a neighbour counts beside one of the entity that a query names."""


@dataclass(slots=True)
class FactQuestion:
    """A query as a vector, the entities that it names with what each counts, and what went wrong.

    >>> FactQuestion().degraded
    ''
    """

    vector: list[float] | None = None
    entities: dict[str, float] = field(default_factory=dict)
    degraded: str = ""


class FactQuestions:
    """One way of recall, chosen when a store is made.

    >>> FactQuestions(embedder=None, graph=None, mode=None, language="english").mode
    'text'
    """

    def __init__(
        self,
        *,
        embedder: Embedder | None,
        graph: Graph | None,
        mode: RecallMode | None,
        language: str,
    ) -> None:
        default: RecallMode = "text" if embedder is None and graph is None else "hybrid"
        self.mode = default if mode is None else check_mode(mode)
        self.embedder = embedder if self.mode in {"vector", "hybrid"} else None
        self.graph = graph if self.mode in {"graph", "hybrid"} else None
        self.language = check_language("language", language)

    def check_configured(self, *, engine: str) -> None:
        """Refuse a mode that lacks what it recalls by."""
        lacking = {
            "vector": None if self.embedder else "an embedder, as in embedder=HashEmbedder()",
            "graph": None if self.graph else "a graph, as in graph=state.graph",
        }.get(self.mode)
        if lacking:
            raise NotSupportedError(
                engine, f"long-term memory in mode {self.mode}", why=f"configure {lacking}"
            )

    async def ask(self, query: str) -> FactQuestion:
        """Everything that waits for others.

        ::

            question = await questions.ask("what does Zoe drink?")
        """
        question = FactQuestion()
        if self.embedder:
            try:
                [question.vector] = await embed_texts(self.embedder, [query], mode="query")
            except HoldfastError as error:
                if self.mode == "vector":
                    raise
                question.degraded = f"recall by words only: {error}"
        if self.graph:
            question.entities = await self.named(self.graph, query)
        return question

    async def named(self, graph: Graph, query: str) -> dict[str, float]:
        """The entities that a query names, and their neighbours, with what each counts.

        ::

            counts = await questions.named(graph, "what does Zoe drink?")
        """
        found: dict[str, float] = {}
        named = await graph.find_entities(names_in(query))
        for entity in named:
            around = await graph.get_neighbors(entity.id)
            found |= {other.id: NEIGHBOUR for other in around.entities}
        return found | {entity.id: 1.0 for entity in named}
