"""Small graphs for the tests of the saver."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph


class Log(TypedDict):
    """A list that nodes append to."""

    log: Annotated[list[str], operator.add]


def _joined(state: list[str] | None, writes: list[list[str]]) -> list[str]:
    return [*(state or []), *(one for write in writes for one in write)]


class Delta(TypedDict):
    """The same as a delta channel: stored as a whole only now and then."""

    log: Annotated[list[str], DeltaChannel(_joined, snapshot_frequency=10)]


def line(saver: Any, *nodes: Any, schema: Any = Log) -> Any:
    """A graph whose nodes run one after the other."""
    builder = StateGraph(schema)
    names = [f"n{at}" for at in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    for one, other in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(one, other)
    return builder.compile(checkpointer=saver)


def thread(name: str, **more: Any) -> dict[str, Any]:
    """The config of a thread."""
    return {"configurable": {"thread_id": name, **more}}
