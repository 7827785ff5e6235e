"""LangChain documents and cached embeddings in Holdfast, found again in another process.

    python examples/langchain_stores.py ./memory

Needs the extras langchain and embedded. A function that counts words takes the place of the
embedding model, so that it runs offline.
"""

from __future__ import annotations

import asyncio
import sys

from langchain_core.embeddings import Embeddings

import holdfast
from holdfast.adapters.langchain import HoldfastKeyValueStore, HoldfastVectorStore

WORDS = ("tide", "train", "tea")


class Model(Embeddings):
    """Where an embedding model would be asked."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count words."""
        return [[text.count(word) + 0.01 for word in WORDS] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Count words."""
        return self.embed_documents([text])[0]


async def main(folder: str) -> None:
    """Store in one life of the process, find in the next."""
    async with holdfast.open(folder, tenant="acme") as state:
        documents = HoldfastVectorStore(state, Model(), collection="notes")
        await documents.aadd_texts(
            ["low tide at noon", "the train leaves at six", "high tide at six"],
            [{"kind": "sea"}, {"kind": "rail"}, {"kind": "sea"}],
            ids=["n1", "n2", "n3"],
        )
        await HoldfastKeyValueStore(state, name="cache").amset([("n1", b"\x01\x02")])

    async with holdfast.open(folder, tenant="acme") as state:
        documents = HoldfastVectorStore(state, Model(), collection="notes")
        for found in await documents.asimilarity_search("tide", k=2, filter={"kind": "sea"}):
            print(found.id, found.page_content)
        cache = HoldfastKeyValueStore(state, name="cache")
        print(await cache.amget(["n1", "n2"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} FOLDER")
    asyncio.run(main(sys.argv[1]))
