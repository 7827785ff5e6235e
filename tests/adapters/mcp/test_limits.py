"""What one caller of the memory server may cost the others: time on the event loop, and memory."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from holdfast import State
from holdfast.adapters.mcp import MemoryGraph
from holdfast.adapters.mcp.graph import MAX_SIZE
from holdfast.errors import InvalidInputError
from tests.adapters.mcp.clients import caller, connected

pytestmark = pytest.mark.asyncio(loop_scope="session")


class _Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    comparisons: ClassVar[int] = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Counted.comparisons += 1
        return str.__eq__(self, other)


def _texts(count: int) -> list[Any]:
    return [_Counted(at) for at in range(count)]


async def test_each_observation_is_compared_once_whatever_the_number(state: State) -> None:
    graph = MemoryGraph(state.for_owner("ana").items)
    there = [str(at) for at in range(500)]
    entity = {"name": "Riga", "entityType": "city", "observations": there}
    await graph.create_entities([entity])
    _Counted.comparisons = 0
    added = await graph.add_observations([("Riga", _texts(500)), ("Riga", _texts(500))])
    assert [one["addedObservations"] for one in added] == [[], []]
    await graph.delete_observations([("Riga", [_Counted("other")])] * 500)
    assert _Counted.comparisons <= 2_000
    assert (await graph.read()).to_json()["entities"] == [entity]


async def test_observations_of_one_call_are_those_of_the_reference(state: State) -> None:
    graph = MemoryGraph(state.for_owner("ana").items)
    twins = [{"name": "Riga", "entityType": kind, "observations": ["a"]} for kind in "12"]
    await graph.create_entities(twins)
    added = await graph.add_observations(
        [("Riga", ["b", "b"]), ("Riga", ["a", "b", "c"]), ("Riga", [])]
    )
    assert [one["addedObservations"] for one in added] == [["b", "b"], ["c"], []]
    await graph.delete_observations([("Riga", ["a"]), ("Riga", ["b", "no"]), ("no", ["c"])])
    left = [one["observations"] for one in (await graph.read()).to_json()["entities"]]
    assert left == [["c"], ["a"]]


async def test_a_graph_grows_up_to_its_maximum_size_only(state: State) -> None:
    items = state.for_owner("ana").items
    graph, large = MemoryGraph(items), "x" * 900_000
    for at in range(MAX_SIZE // 900_500):
        row = {"name": f"e{at}", "entityType": "note", "observations": [large]}
        await graph.create_entities([row])
    full = await graph.read()
    # Another process, which has to read the graph first, counts the same.
    for one in (graph, MemoryGraph(items)):
        with pytest.raises(InvalidInputError, match="graph: would have a size of"):
            await one.create_entities([{"name": "a", "entityType": "", "observations": [large]}])
        with pytest.raises(InvalidInputError, match="graph: would have a size of"):
            await one.add_observations([("e0", [str(at) for at in range(9_000)])])
        tiny = [{"from": str(at), "to": "", "relationType": ""} for at in range(999)]
        with pytest.raises(InvalidInputError, match="graph: would have a size of"):
            await one.create_relations([{**row, "to": "y" * 900} for row in tiny])
        assert await one.read() == full
    await graph.delete_entities(["e0"])
    await graph.create_entities([{"name": "a", "entityType": "", "observations": [large]}])
    assert (await graph.read()).size <= MAX_SIZE
    assert (await graph.read()).size == (await MemoryGraph(items).read()).size


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("remember", {"text": "x" * 10_001}, "$.text"),
        ("remember", {"text": "x", "topic": "x" * 1_001}, "$.topic"),
        ("remember", {"text": "x", "source": "x" * 1_001}, "$.source"),
        ("recall", {"query": "x " * 5_001}, "$.query"),
        ("create_board", {"conversation": "c1", "titles": ["x"] * 1_001}, "$.titles"),
        ("create_board", {"conversation": "c1", "titles": ["x" * 1_001]}, "$.titles[0]"),
        ("add_cards", {"board": "b1", "titles": ["x"] * 1_001}, "$.titles"),
    ],
)
async def test_a_text_or_a_list_without_end_is_refused(
    state: State, tool: str, arguments: dict[str, Any], field: str
) -> None:
    async with connected(caller(state, "ana")) as client:
        found = await client.call_tool(tool, arguments)
        assert found.is_error
        assert f"`{field}`" in found.content[0].text
        listed = await client.call_tool("list_facts", {})
        assert listed.structured_content == {"facts": []}


async def test_a_board_grows_up_to_its_maximum_only(state: State) -> None:
    async with connected(caller(state, "ana")) as client:
        arguments: dict[str, Any] = {"conversation": "c1", "titles": ["x"] * 999}
        board = (await client.call_tool("create_board", arguments)).structured_content["id"]
        for titles, fits in ((["a", "b"], False), (["a"], True), (["b"], False)):
            found = await client.call_tool("add_cards", {"board": board, "titles": titles})
            assert found.is_error is not fits
        boards = await client.call_tool("read_boards", {"conversation": "c1"})
        assert len(boards.structured_content["boards"][0]["cards"]) == 1_000


async def test_writers_at_once_do_not_make_each_other_read_the_graph_again(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = state.for_owner("ana").items
    pages, search = list[Any](), items.search

    async def counted(*args: Any, **options: Any) -> Any:
        pages.append(args)
        return await search(*args, **options)

    monkeypatch.setattr(items, "search", counted)
    graph = MemoryGraph(items)
    rows = [{"name": f"e{at}", "entityType": "", "observations": []} for at in range(20)]
    await asyncio.gather(*(graph.create_entities([row]) for row in rows))
    assert pages == []
    other = MemoryGraph(items)
    found = await asyncio.gather(*(other.read() for _ in rows))
    assert len(pages) == 1
    assert all(len(one.entities) == len(rows) for one in found)
