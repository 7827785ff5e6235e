"""Documents, graph, boards, channels and pages of sessions in the view of one owner."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import AgentId, ChatMessage, Document, Entity, Relationship, State
from holdfast.content import TextBlock
from holdfast.errors import ConflictError, NotFoundError
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
TREASURE = "the gold is under the oak"
AGENT = AgentId.parse("keeper")


@pytest.fixture
def state(wired: State) -> State:
    """A state of each wiring."""
    return wired


async def _hide(view: State) -> None:
    """Store the secret in what is not part of a conversation."""
    await view.vectors.add(
        [Document(id="d1", content=[TextBlock(TREASURE)], embedding=[1.0, 0.0])], collection="maps"
    )
    await view.graph.add_entities(
        [Entity("Place", {"name": "Oak", "holds": TREASURE}, "oak"), Entity("Place", {}, "gate")]
    )
    await view.graph.add_relationships([Relationship("gate", "oak", "leads to", {}, "r1")])
    await view.boards.create_task_list("c1", [TREASURE])
    await view.channel("alerts").publish({"where": TREASURE})


async def _look(view: State) -> dict[str, Any]:
    """Look for it by every id that was used."""
    return {
        "search": await view.vectors.search([1.0, 0.0], collection="maps"),
        "documents": await view.vectors.get(["d1"], collection="maps"),
        "walk": await view.graph.get_neighbors("gate", depth=2),
        "find": await view.graph.find_entities(["oak", "Oak"]),
        "board": await view.boards.get_by_conversation("c1"),
        "boards": await view.boards.get_boards_by_conversation("c1"),
        "channel": await view.channel("alerts").read(),
    }


async def test_documents_graph_boards_and_channels_are_each_owners_own(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    await _hide(ana)
    assert {name for name, it in (await _look(ana)).items() if TREASURE not in repr(it)} == set()
    assert await ana.vectors.list_collections() == ["maps"]
    for other in (bob, state, state.for_owner("an")):
        assert TREASURE not in repr(await _look(other))
        assert await other.vectors.list_collections() == []
    walked = await ana.graph.get_neighbors("gate")
    assert sorted(one.id for one in walked.entities) == ["gate", "oak"]
    [edge] = walked.relationships
    assert (edge.id, edge.source_id, edge.target_id) == ("r1", "gate", "oak")
    [board] = await ana.boards.get_boards_by_conversation("c1")
    assert board.conversation_id == "c1"
    assert await ana.boards.get_task_list(board.id) == board


async def test_an_owner_cannot_change_what_another_stored(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    await _hide(ana)
    [board] = await ana.boards.get_boards_by_conversation("c1")
    card = board.tasks[0].id
    before = await _look(ana)
    for other in (bob, state):
        assert await other.vectors.delete(["d1"], collection="maps") == 0
        assert await other.vectors.delete_collection("maps") == 0
        assert await other.graph.delete_entity("oak") is False
        assert await other.graph.delete_relationship("r1") is False
        with pytest.raises(NotFoundError, match="gate"):
            await other.graph.add_relationships([Relationship("gate", "oak", "none", {}, "r2")])
        assert await other.boards.get_task_list(board.id) is None
        assert await other.boards.update_status(board.id, card, "succeeded") is None
        assert await other.boards.delete_task(board.id, card) is False
        with pytest.raises(NotFoundError, match=board.id):
            await other.boards.add_tasks(board.id, ["mine"])
        await _hide_other(other)
    assert await _look(ana) == before


async def _hide_other(view: State) -> None:
    """The same ids, with another content."""
    await view.vectors.upsert(
        [Document(id="d1", content=[TextBlock("none")], embedding=[0.0, 1.0])], collection="maps"
    )
    await view.graph.add_entities([Entity("Place", {"name": "Oak"}, "oak")])
    await view.boards.create_task_list("c1", ["none"])
    await view.channel("alerts").publish({"where": "nowhere"})


async def test_a_shared_memory_shares_the_graph_and_documents_alone(state: State) -> None:
    ana = state.for_owner("ana", memory="shared")
    bob = state.for_owner("bob", memory="shared")
    await _hide(ana)
    found = await _look(bob)
    shared = {name for name, it in found.items() if TREASURE in repr(it)}
    assert shared == {"search", "documents", "walk", "find"}


async def test_facts_of_an_owner_are_about_its_own_entities(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    await ana.graph.add_entities([Entity("Place", {"name": "Oak"}, "oak")])
    await ana.long_term.save(AGENT, TREASURE, entities=["oak"])
    with pytest.raises(NotFoundError, match="oak"):
        await bob.long_term.save(AGENT, "mine", entities=["oak"])
    [fact] = await ana.long_term.search(AGENT, "what is at the Oak?")
    assert fact.content == TREASURE


async def test_the_longest_ids_of_the_longest_owner_are_stored(state: State) -> None:
    long = "x" * 512
    ana = state.for_tenant(new_ref().ljust(512, "t")).for_owner("a" * 512)
    await ana.vectors.add(
        [Document(id=long, content=[TextBlock("it")], embedding=[1.0, 0.0])], collection=long
    )
    await ana.graph.add_entities([Entity("Place", {"name": long}, long)])
    await ana.graph.add_relationships([Relationship(long, long, long, {}, long)])
    board = await ana.boards.create_task_list(long, ["it"], agent_id=long)
    await ana.channel(long).publish({}, id=long)
    assert [one.id for one in await ana.vectors.get([long], collection=long)] == [long]
    assert [one.id for one in await ana.graph.find_entities([long])] == [long]
    assert await ana.boards.get_by_conversation(long) == board
    assert [one.id for one in await ana.channel(long).read()] == [long]


async def test_pages_of_sessions_of_a_shared_memory_are_full(state: State) -> None:
    ana = state.for_owner("ana", memory="shared")
    bob = state.for_owner("bob", memory="shared")
    for at in range(3):
        await bob.episodes.start_session(AGENT, f"b{at}")
    for at in range(3):
        await ana.episodes.start_session(AGENT, f"a{at}")
        await bob.episodes.start_session(AGENT, f"b{at + 3}")
    found = await ana.episodes.list_sessions(AGENT, limit=2)
    found += await ana.episodes.list_sessions(AGENT, limit=2, cursor=found[-1].cursor)
    assert [one.id for one in found] == ["a2", "a1", "a0"]


async def test_states_of_several_sessions_are_each_owners_own(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    await ana.short_term.set_state("s1", {"where": TREASURE})
    [found] = await ana.short_term.get_many(["s1"])
    assert found.state == {"where": TREASURE}
    for other in (bob, state):
        assert [one.state for one in await other.short_term.get_many(["s1", "s2"])] == [{}, {}]


async def test_an_owner_pops_and_replaces_only_its_own_messages(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    await ana.history.append(AGENT, ChatMessage.user(TREASURE), session_id="s1")
    for other in (bob, state):
        assert await other.history.pop(AGENT, session_id="s1") is None
        with pytest.raises(ConflictError) as caught:
            await other.history.replace_tail(
                AGENT,
                session_id="s1",
                after_seq=0,
                messages=[ChatMessage.user("mine now")],
                expected_last_seq=1,
            )
        assert caught.value.key == "s1"
    popped = await ana.history.pop(AGENT, session_id="s1")
    assert popped is not None
    assert popped.text == TREASURE
