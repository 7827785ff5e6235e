"""A checked document, to be stored in a vector store: its content and metadata as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.spi.embedding import Embedder, embed_texts
from holdfast.values.checks import check_id, check_list, check_subject, check_vector
from holdfast.values.codec import (
    blocks_from_json,
    blocks_to_json,
    decode_json,
    encode_json,
    encode_object,
)
from holdfast.values.content import text_of
from holdfast.values.documents import Document, SearchResult
from holdfast.values.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotSupportedError,
)


@dataclass(slots=True)
class DocumentDraft:
    """What an engine stores for a document; ``vector`` is empty until it is embedded.

    >>> [draft] = draft_documents([Document.from_text("x", id="d1")], replace=False)
    >>> draft.id, draft.metadata, draft.vector
    ('d1', '{}', [])
    """

    id: str
    content: str
    metadata: str
    vector: list[float]
    text: str
    subject: str = ""


def draft_documents(documents: object, *, replace: bool) -> list[DocumentDraft]:
    """Check documents, and return their drafts. Raises an error if an id occurs twice.

    >>> draft_documents([], replace=True)
    []
    """
    drafts = [
        _draft(document, f"documents[{at}]")
        for at, document in enumerate(check_list("documents", documents))
    ]
    seen: set[str] = set()
    for at, draft in enumerate(drafts):
        if draft.id in seen and replace:
            raise InvalidInputError(
                f"documents[{at}].id",
                f"duplicate id {draft.id!r} in one batch: pass each id once",
            )
        if draft.id in seen:
            raise AlreadyExistsError("document", draft.id)
        seen.add(draft.id)
    return drafts


def _draft(document: object, at: str) -> DocumentDraft:
    if not isinstance(document, Document):
        raise InvalidInputError(at, f"must be a Document, not {type(document).__name__}")
    key = check_id(f"{at}.id", document.id)
    given: object = document.content
    if isinstance(given, str):
        raise InvalidInputError(
            f"{at}.content", "must be a list of blocks; Document.from_text(text) takes plain text"
        )
    content = encode_json(
        blocks_to_json(document.content, field=f"{at}.content"), field=f"{at}.content"
    )
    metadata = encode_object(document.metadata, field=f"{at}.metadata")
    vector = (
        [] if document.embedding is None else check_vector(f"{at}.embedding", document.embedding)
    )
    about: object = document.subject
    subject = "" if about == "" else check_subject(about, f"{at}.subject")
    return DocumentDraft(key, content, metadata, vector, text_of(document.content), subject)


async def embed_drafts(
    drafts: Sequence[DocumentDraft], embedder: Embedder | None, *, engine: str
) -> None:
    """Compute the missing vectors. The errors name ``engine``.

    ::

        await embed_drafts(drafts, embedder, engine="inmemory")
    """
    bare = [draft for draft in drafts if not draft.vector]
    if not bare:
        return
    if embedder is None:
        raise NotSupportedError(
            engine,
            "documents without an embedding",
            why="configure an embedder, as in holdfast.open(url, embedder=…), "
            "or pass Document(embedding=…)",
        )
    for at, draft in enumerate(drafts):
        if not draft.vector and not draft.text.strip():
            raise InvalidInputError(
                f"documents[{at}].content", "has no text to embed: pass an embedding"
            )
    vectors = await embed_texts(embedder, [draft.text for draft in bare])
    for draft, vector in zip(bare, vectors, strict=True):
        draft.vector = vector


def stored_document(
    id: str, content: str, metadata: str, vector: list[float], subject: str = ""
) -> Document:
    """Return the document of a stored draft. The caller owns ``vector`` from then on.

    >>> stored_document("d1", '[{"type":"text","text":"x"}]', "{}", [1.0]).text
    'x'
    """
    blocks = blocks_from_json(decode_json(content))
    return Document(blocks, id, vector, decode_json(metadata), subject)


def stored_result(
    id: str, content: str, metadata: str, score: float, subject: str = ""
) -> SearchResult:
    """Return the document of a stored draft as a search result.

    >>> stored_result("d1", '[{"type":"text","text":"x"}]', "{}", 0.5).score
    0.5
    """
    blocks = blocks_from_json(decode_json(content))
    return SearchResult(id, blocks, score, decode_json(metadata), subject)
