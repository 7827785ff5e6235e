"""A LangGraph agent whose memories are in Holdfast: it finds them in every thread, by meaning.

    python examples/langgraph_memories.py ./memory

Needs langgraph and the extras langgraph and embedded. A function that counts words takes the place
of the embedding model, so that it runs offline.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, TypedDict

from langgraph.config import get_store
from langgraph.graph import START, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, HoldfastStore

WORDS = ("tea", "coffee", "train", "bike")


class Turn(TypedDict):
    """What the graph passes from node to node."""

    user: str
    says: str
    recalled: list[str]


def embed(texts: list[str]) -> list[list[float]]:
    """Where an embedding model would be asked."""
    return [[float(text.count(word)) for word in WORDS] for text in texts]


async def remember(turn: Turn) -> dict[str, Any]:
    """Recall what is close to the message, then store the message."""
    store, mine = get_store(), ("memories", turn["user"])
    found = await store.asearch(mine, query=turn["says"], filter={"kind": "said"}, limit=1)
    await store.aput(mine, turn["says"], {"kind": "said", "text": turn["says"]})
    return {"recalled": [item.value["text"] for item in found if item.score]}


def build(state: holdfast.State) -> Any:
    """A graph of one node, with threads and memories in one state."""
    builder = StateGraph(Turn)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    store = HoldfastStore(
        state,
        index={"embed": embed, "dims": len(WORDS), "fields": ["text"]},
        ttl={"default_ttl": 60 * 24 * 365, "refresh_on_read": True},
    )
    return builder.compile(checkpointer=HoldfastSaver(state), store=store)


async def main(folder: str) -> None:
    """Say things in one life of the process, recall them in the next, in another thread."""
    async with holdfast.open(folder, tenant="acme") as state:
        graph = build(state)
        for says in ("I like tea", "I take the train to work"):
            turn = {"user": "ana", "says": says}
            await graph.ainvoke(turn, {"configurable": {"thread_id": "monday"}})

    async with holdfast.open(folder, tenant="acme") as state:
        graph = build(state)
        for user, says in (("ana", "tea or coffee?"), ("ben", "tea or coffee?")):
            turn = {"user": user, "says": says}
            done = await graph.ainvoke(turn, {"configurable": {"thread_id": f"{user}-tuesday"}})
            print(user, "recalls", done["recalled"])
        memories = ("langgraph", "memories", None)
        print("users:", [path[-1] for path in await state.items.list_namespaces(prefix=memories)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} FOLDER")
    asyncio.run(main(sys.argv[1]))
