"""Encrypted documents: contents and metadata are encrypted, vectors are not."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from holdfast.sealing.blind import Blind
from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal
from holdfast.spi.document_draft import DocumentDraft
from holdfast.spi.vectors import Nearest, VectorStorage
from holdfast.values.codec import blocks_from_json, decode_json, encode_json
from holdfast.values.content import ContentBlock, TextBlock
from holdfast.values.documents import Document, SearchResult
from holdfast.values.filters import Filter
from holdfast.values.owners import split_owned
from holdfast.values.sealed import SEALED_TEXT

D = TypeVar("D", Document, SearchResult)


class SealedDocuments(VectorStorage):
    """Encrypts what a ``VectorStorage`` stores, except vectors; the settings must allow that.

    An encrypted content is stored as one text block. ::

        documents = SealedDocuments(PostgresVectors(engine), sealing)
    """

    def __init__(self, inner: VectorStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        self.name = inner.name
        self.max_dimension = inner.max_dimension

    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        """Store documents."""
        for draft in drafts:
            self._seal.check("documents", draft.content, draft.metadata, draft.text)
            self._seal.check_vectors(draft.vector)
        blind = await self._seal.blind()
        if blind is not None:
            drafts = [await self._sealed(collection, draft, blind) for draft in drafts]
        await self._inner.write(collection, drafts, replace=replace)

    async def _sealed(self, collection: str, draft: DocumentDraft, blind: Blind) -> DocumentDraft:
        """Encrypt a document with the key of its subject, or else of its owner."""
        sealer = await self._seal.sealer(draft.subject or split_owned(collection)[0])
        if sealer is None:
            return draft
        text = sealer.text(_place(collection, draft.id, "content"), draft.content)
        return dataclasses.replace(
            draft,
            content=encode_json([{"type": "text", "text": text}]),
            metadata=sealer.json(
                _place(collection, draft.id, "metadata"),
                draft.metadata,
                blind.fields(decode_json(draft.metadata)),
            ),
            text="",
        )

    async def search(
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        """Return the documents closest to a vector."""
        self._seal.check_vectors(query)
        blind = await self._seal.blind()
        if blind is not None:
            wanted = blind.filter(wanted, whole=False)
        found = await self._inner.search(collection, query, limit, wanted)
        return found._replace(results=await self._open(collection, found.results))

    async def get(self, collection: str, ids: Sequence[str]) -> Sequence[Document]:
        """Return the documents that are there."""
        return await self._open(collection, await self._inner.get(collection, ids))

    async def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Delete documents."""
        return await self._inner.delete(collection, ids)

    async def list_collections(self, prefix: str, hidden: str) -> list[str]:
        """Return the names of the collections that have documents."""
        return await self._inner.list_collections(prefix, hidden)

    async def delete_collection(self, collection: str) -> int:
        """Delete a collection."""
        return await self._inner.delete_collection(collection)

    async def _open(self, collection: str, found: Sequence[D]) -> list[D]:
        values = [*(one.metadata for one in found), *(_box(one.content) for one in found)]
        opener = await self._seal.opener(*values)
        if opener.is_plain:
            return list(found)
        return [_opened(opener, collection, one) for one in found]


def _place(collection: str, id: str, field: str) -> Place:
    return Place(f"document {field}", split_owned(collection)[1], id)


def _box(content: Sequence[ContentBlock]) -> str:
    """Return the encrypted text of a stored content; empty if it is not encrypted."""
    if len(content) != 1 or not isinstance(content[0], TextBlock):
        return ""
    return content[0].text if content[0].text.startswith(SEALED_TEXT) else ""


def _opened(opener: Opener, collection: str, one: D) -> D:
    owner = one.subject or split_owned(collection)[0]
    place = _place(collection, one.id, "metadata")
    content, box = one.content, _box(one.content)
    if box:
        text = opener.text(owner, _place(collection, one.id, "content"), box)
        content = blocks_from_json(decode_json(text))
    return dataclasses.replace(
        one, content=content, metadata=opener.json(owner, place, one.metadata)
    )
