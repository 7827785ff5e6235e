"""The nine tools of the graph answer as MCP's reference memory server does."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import State
from tests.adapters.mcp.clients import caller, connected, reference, started

pytestmark = pytest.mark.asyncio(loop_scope="session")
CALLS = 2_000
NAMES = ["ravi", "Ana", "éva", "x y", "", "日本", "O'Neil", "a/b", "İ", "\x00", "ΑΣ"]
KINDS = ["person", "City", ""]
TEXTS = ["likes python", "Likes TEA", "", "naïve", "x", "line\nbreak", '"quoted"', "🌊"]
WORDS = ["", "PY", "a", "é", "zzz", "ΑΣ", "🌊", "i̇"]
Call = tuple[str, dict[str, Any]]


class Calls:
    """Random calls of the nine tools, some of them wrong."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same calls each time

    def next(self) -> Call:
        """A call: the name of a tool, and arguments."""
        return self._wrong() if self._random.random() < 0.1 else self._valid()

    def _valid(self) -> Call:
        pick = self._random.choice
        calls: list[Callable[[], Call]] = [
            lambda: ("create_entities", {"entities": self._some(self._entity)}),
            lambda: ("create_relations", {"relations": self._some(self._relation)}),
            lambda: ("add_observations", {"observations": self._some(self._observed)}),
            lambda: ("delete_entities", {"entityNames": self._some(self._name)[:1]}),
            lambda: ("delete_observations", {"deletions": self._some(self._unobserved)}),
            lambda: ("delete_relations", {"relations": self._some(self._relation)}),
            lambda: ("read_graph", {}),
            lambda: ("search_nodes", {"query": pick(WORDS)}),
            lambda: ("open_nodes", {"names": self._some(self._name)}),
        ]
        return pick(calls)()

    def _wrong(self) -> Call:
        calls: list[Call] = [
            ("create_entities", {"entities": [{"name": 3}]}),
            ("create_entities", {"entities": "all"}),
            ("create_relations", {"relations": [{"from": "a", "to": "b"}]}),
            ("add_observations", {"observations": [{"entityName": "?", "contents": ["x"]}]}),
            ("open_nodes", {}),
            ("search_nodes", {"query": None}),
        ]
        return self._random.choice(calls)

    def _some(self, make: Any) -> list[Any]:
        return [make() for _ in range(self._random.randint(0, 3))]

    def _name(self) -> str:
        return self._random.choice(NAMES)

    def _texts(self) -> list[str]:
        return self._some(lambda: self._random.choice(TEXTS))

    def _entity(self) -> dict[str, Any]:
        kind = self._random.choice(KINDS)
        more = {"colour": "red"} if self._random.random() < 0.1 else {}
        return {"name": self._name(), "entityType": kind, "observations": self._texts(), **more}

    def _relation(self) -> dict[str, Any]:
        kind = self._random.choice(KINDS)
        return {"from": self._name(), "to": self._name(), "relationType": kind}

    def _observed(self) -> dict[str, Any]:
        return {"entityName": self._name(), "contents": self._texts()}

    def _unobserved(self) -> dict[str, Any]:
        return {"entityName": self._name(), "observations": self._texts()}


async def _answer(client: Any, name: str, arguments: dict[str, Any]) -> tuple[Any, Any] | None:
    """The structured answer and the text, or ``None`` for an error."""
    found = await client.call_tool(name, arguments)
    if found.is_error:
        return None
    text = found.content[0].text
    return found.structured_content, json.loads(text) if text[:1] in "[{" else text


async def test_2000_random_calls_answer_as_the_reference_does(state: State, tmp_path: Path) -> None:
    calls, errors = Calls(7), 0
    graph: dict[str, list[Any]] = {}
    file = str(tmp_path / "memory.jsonl")
    async with (
        started(reference(), MEMORY_FILE_PATH=file) as theirs,
        connected(caller(state)) as ours,
    ):
        for _ in range(CALLS):
            name, arguments = calls.next()
            expected = await _answer(theirs, name, arguments)
            assert await _answer(ours, name, arguments) == expected, (name, arguments)
            errors += expected is None
            if name == "read_graph" and expected is not None:
                graph = expected[0]
        resource = (await ours.read_resource("memory://knowledge-graph")).contents[0]
        same = (await theirs.read_resource("memory://knowledge-graph")).contents[0]
    assert json.loads(resource.text) == json.loads(same.text)
    # It compared something: there were errors, and a graph.
    assert errors > CALLS // 50
    assert graph["entities"]
    assert graph["relations"]


async def test_the_tools_have_the_names_and_arguments_of_the_reference(
    state: State, tmp_path: Path
) -> None:
    file = str(tmp_path / "memory.jsonl")
    async with (
        started(reference(), MEMORY_FILE_PATH=file) as theirs,
        connected(caller(state)) as ours,
    ):
        expected = {one.name: one for one in (await theirs.list_tools()).tools}
        found = {one.name: one for one in (await ours.list_tools()).tools}
    assert len(expected) == 9
    for name, one in expected.items():
        assert _shape(found[name].input_schema) == _shape(one.input_schema)
        assert _shape(found[name].output_schema) == _shape(one.output_schema)
        assert found[name].title == one.title
        assert found[name].annotations == one.annotations


def _shape(schema: Any) -> Any:
    """A schema without its texts, and without what says that nothing else is allowed."""
    if not isinstance(schema, dict):
        return schema
    left = {"description", "$schema", "additionalProperties"}
    found = {key: _shape(one) for key, one in schema.items() if key not in left}
    return {key: one for key, one in found.items() if one not in ([], None)}


async def test_20_creates_at_once_keep_20(state: State) -> None:
    async with connected(caller(state)) as one, connected(caller(state)) as two:
        made = await asyncio.gather(
            *(
                _answer(client, "create_entities", {"entities": [_entity(f"e{at}{client_at}")]})
                for at in range(10)
                for client_at, client in enumerate((one, two))
            )
        )
        assert all(made)
        graph = await _answer(one, "read_graph", {})
    assert graph is not None
    assert len({entity["name"] for entity in graph[0]["entities"]}) == 20


def _entity(name: str) -> dict[str, Any]:
    return {"name": name, "entityType": "test", "observations": []}
