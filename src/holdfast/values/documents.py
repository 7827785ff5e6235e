"""Documents of a vector store, and what a search finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.values.content import ContentBlock, TextBlock, text_of
from holdfast.values.ids import new_id


@dataclass(frozen=True, slots=True)
class Document:
    """A chunk of content to be found by meaning; not the ``DocumentBlock`` of a message.

    Without an ``id`` it gets one here, so that a retry stores the same document. Without an
    ``embedding`` the store's embedder computes it from the text.

    >>> Document.from_text("low tide at noon", metadata={"kind": "note"}).text
    'low tide at noon'
    """

    content: list[ContentBlock]
    id: str = field(default_factory=new_id)
    embedding: list[float] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    subject: str = ""
    """The id of the person whom it is about, whose erasure deletes it; empty for its owner."""

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        id: str | None = None,
        embedding: list[float] | None = None,
        metadata: dict[str, Any] | None = None,
        subject: str = "",
    ) -> Document:
        """Return a document of plain text.

        >>> Document.from_text("low tide", id="d1").id
        'd1'
        """
        made = new_id() if id is None else id
        return cls([TextBlock(text)], made, embedding, metadata or {}, subject)

    @property
    def text(self) -> str:
        """The text in its blocks, joined: what an embedder reads.

        >>> Document([TextBlock("low "), TextBlock("tide")]).text
        'low tide'
        """
        return text_of(self.content)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A document that a search found; ``score`` is its cosine similarity, higher is closer.

    >>> SearchResult("d1", [TextBlock("low tide")], 0.9, {}).text
    'low tide'
    """

    id: str
    content: list[ContentBlock]
    score: float
    metadata: dict[str, Any]
    subject: str = ""
    """Whom it is about, if that is not its owner."""

    @property
    def text(self) -> str:
        """The text in its blocks, joined.

        >>> SearchResult("d1", [TextBlock("low tide")], 0.9, {}).text
        'low tide'
        """
        return text_of(self.content)
