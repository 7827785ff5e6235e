"""The graph in Studio: degrees, next pages, types, and entities that are expanded."""

from __future__ import annotations

import re

import pytest

from holdfast.studio.screens import graph
from holdfast.values.graph import Entity, Relationship
from holdfast.wiring.state import State
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _hub(state: State, leaves: int) -> None:
    names = [f"leaf{at}" for at in range(leaves)]
    await state.graph.add_entities([Entity("Hub", {"name": "Harbour"}, "hub")])
    await state.graph.add_entities([Entity("Leaf", {}, name) for name in names])
    await state.graph.add_entities([Entity("Far", {}, "far")])
    await state.graph.add_relationships(
        [Relationship("hub", name, "has", {"berth": name}, f"r{name}") for name in names]
        + [Relationship("leaf0", "far", "knows", {}, "rfar")]
    )


async def test_an_entity_shows_all_of_its_relationships_page_by_page(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "LISTED", 2)
    await _hub(state, 5)
    async with Visitor(state) as visitor:
        path, seen, page = "/studio/graph?from=hub", [], ""
        while path:
            page = await visitor.page(path)
            part = page[page.index('aria-labelledby="re"') :]
            seen += [one.partition('"')[0] for one in part.split('id="r-')[1:]]
            found = part.partition('rel="next" href="')[2].partition('"')[0]
            path = f"/studio/graph{found.replace('&amp;', '&')}" if found else ""
        assert seen == [f"rleaf{at}" for at in range(5)]
        assert "5</span>" in page


async def test_an_entity_is_expanded_and_the_picture_says_how_many_are_hidden(
    state: State,
) -> None:
    await _hub(state, 2)
    async with Visitor(state) as visitor:
        first = await visitor.page("/studio/graph?from=hub")
        assert "far" not in first
        assert "&#34;more&#34;: 1" in first
        wide = await visitor.page("/studio/graph?from=hub&expand=leaf0")
        assert "&#34;id&#34;: &#34;far&#34;" in wide
        assert "Show only the beginning" in wide
        assert "&#34;more&#34;: 1" not in wide
        unknown = await visitor.page("/studio/graph?from=hub&expand=nobody")
        assert "Harbour" in unknown


async def test_types_narrow_what_is_shown_and_another_name_is_looked_for(state: State) -> None:
    await _hub(state, 2)
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/graph?from=leaf0&types=knows&q=leaf0")
        assert "&#34;id&#34;: &#34;far&#34;" in page
        assert "Harbour" not in page
        other = await visitor.page("/studio/graph?from=leaf0&q=harbour")
        assert "Relationships of Harbour" in other
        none = await visitor.page("/studio/graph?from=leaf0&q=nobody")
        assert "No entity has this name" in none


async def test_a_path_reads_in_the_direction_of_its_relationships(state: State) -> None:
    names = {"ravi": "Ravi", "launch": "Launch", "offer": "Offer A"}
    await state.graph.add_entities(
        [Entity("T", {"name": one}, id=key) for key, one in names.items()]
    )
    await state.graph.add_entities([Entity("T", {"name": "Alone"}, id="alone")])
    await state.graph.add_relationships(
        [Relationship("ravi", "launch", "leads"), Relationship("ravi", "offer", "chose")]
    )
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/graph?from=launch&to=offer+a")
        trail = page.partition("steps trail")[2].partition("</ol>")[0]
        words = re.sub(r"<[^>]+>", " ", trail.partition(">")[2]).split()
        assert words == ["Ravi", "leads", "Launch", "Ravi", "chose", "Offer", "A"]
        nobody = await visitor.page("/studio/graph?from=launch&to=nobody")
        assert "No entity has this name or id." in nobody
        assert 'name="to" value="nobody"' in nobody
        assert "No path within 4 steps." in await visitor.page("/studio/graph?from=launch&to=alone")
        same = await visitor.page("/studio/graph?from=launch&to=Launch")
        assert "The two are the same." in same
