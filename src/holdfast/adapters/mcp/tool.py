"""A tool of the memory server: its name, its schemas and the function that runs it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.adapters.mcp.graph import MemoryGraph
from holdfast.values.errors import InvalidInputError
from holdfast.wiring.state import State

Limit = Annotated[int, Meta(ge=1, le=100, description="How many to return at most.")]

SHORT, LONG = 1_000, 10_000
"""The most characters of a text that an agent writes: a title or a topic, and a fact or a question.

A page of them is then an answer of moderate size, and no question takes long to read.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose data a call reads and writes: the stores of one owner, an agent, and its graph.

    ::

        caller = Caller(state.for_owner("ana"), "mcp", MemoryGraph(state.items))
    """

    state: State
    """The view of one owner, or of the data without an owner: ``state.for_owner(...)``."""

    agent: str
    graph: MemoryGraph
    writes: bool = True
    """Whether the caller may change data."""


class Done(msgspec.Struct):
    """The answer of a tool that returns nothing else."""

    success: bool
    message: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. The JSON schemas are generated from the Structs ``arguments`` and ``answer``."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    run: Callable[[Caller, Any], Awaitable[msgspec.Struct]]
    reads: bool = False
    """Whether the tool only reads."""

    deletes: bool = False
    text: Callable[[Any], str] | None = None
    """Converts an answer to text; by default it is written as JSON."""

    async def call(self, caller: Caller, arguments: dict[str, Any]) -> tuple[str, Any]:
        """Check the arguments, run the tool, and return its answer as text and as JSON values."""
        try:
            checked = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise InvalidInputError("arguments", str(error)) from None
        answer = await self.run(caller, checked)
        built = msgspec.to_builtins(answer)
        return self.text(built) if self.text else as_text(built), built


def as_text(value: Any) -> str:
    """Return a value as indented JSON.

    >>> as_text([])
    '[]'
    """
    return json.dumps(value, indent=2, ensure_ascii=False)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a Struct, without ``$ref``, which some clients do not support.

    >>> schema_of(Done)["required"]
    ['success', 'message']
    """
    schema = msgspec.json.schema(kind)
    definitions = schema.get("$defs", {})

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(one) for one in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inlined(definitions[node["$ref"].rpartition("/")[2]])
        return {key: inlined(one) for key, one in node.items() if key not in ("title", "$defs")}

    found: dict[str, Any] = inlined(schema)
    return found
