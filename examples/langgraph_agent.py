"""A LangGraph agent whose threads are in Holdfast: it asks, stops, and goes on in another process.

    python examples/langgraph_agent.py ./memory

Needs langgraph and the extras langgraph and embedded. The place of the language model is taken by a
function, so that it runs offline.
"""

from __future__ import annotations

import asyncio
import operator
import sys
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.errors import ConflictError


class Chat(TypedDict):
    """What the graph passes from node to node."""

    messages: Annotated[list[str], operator.add]


def model(chat: Chat) -> Chat:
    """Where a language model would be asked."""
    return {"messages": [f"draft of {chat['messages'][-1]!r}"]}


def approve(chat: Chat) -> Chat:
    """Ask a person. The graph stops here until there is an answer."""
    answer = interrupt({"send?": chat["messages"][-1]})
    return {"messages": [f"sent: {answer}"]}


def build(saver: HoldfastSaver) -> Any:
    """A graph of two nodes."""
    builder = StateGraph(Chat)
    builder.add_node("model", model)
    builder.add_node("approve", approve)
    builder.add_edge(START, "model")
    builder.add_edge("model", "approve")
    builder.add_edge("approve", END)
    return builder.compile(checkpointer=saver)


async def main(folder: str) -> None:
    """Ask in one life of the process, answer in the next."""
    thread: Any = {"configurable": {"thread_id": "mail-1"}}
    async with holdfast.open(folder, tenant="acme") as state:
        graph = build(HoldfastSaver(state, ttl_seconds=30 * 86_400))
        await graph.ainvoke({"messages": ["a letter to Ana"]}, thread)
        print("stopped before:", (await graph.aget_state(thread)).next[0])

    async with holdfast.open(folder, tenant="acme") as state:
        saver = HoldfastSaver(state, forks="refuse")
        graph = build(saver)
        done = await graph.ainvoke(Command(resume="yes"), thread)
        print(done["messages"][-1])

        steps = [step async for step in saver.alist(thread)]
        try:  # as a worker does that was frozen after the first step
            await saver.aput(steps[-1].config, steps[0].checkpoint, steps[0].metadata, {})
        except ConflictError:
            print("a late worker was refused")
        await saver.aprune(["mail-1"])
        print("still there:", (await graph.aget_state(thread)).values["messages"][0])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} FOLDER")
    asyncio.run(main(sys.argv[1]))
