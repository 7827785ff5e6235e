"""Something in every store, for one owner, and how to read it all again."""

from __future__ import annotations

from typing import Any

from holdfast import AgentId, ChatMessage, Document, Entity, Event, State
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.content import TextBlock
from holdfast.items import ItemKey, ItemPut

AGENT, OTHER = "writer", "editor"
SESSION, ELSEWHERE = "s1", "s2"
PLACES = [(agent, session) for agent in (AGENT, OTHER) for session in (SESSION, ELSEWHERE)]


async def fill(state: State, name: str) -> list[str]:
    """Write to every store of a view, and return the ids of its boards and tasks."""
    ids: list[str] = []
    for agent, session in PLACES:
        message = ChatMessage.user(f"{name} said")
        await state.history.append(agent, message, session_id=session)
        board = await state.boards.create_task_list(session, [name], agent_id=agent)
        task = await state.tasks.submit(agent, ChatMessage.user(name), session_id=session)
        ids += [board.id, task.id]
    for session in (SESSION, ELSEWHERE):
        await state.short_term.set_state(session, {"who": name})
        empty = TypedBytes("json", b"{}")
        checkpoint = Checkpoint(session, "", "1", None, empty, empty, versions={"x": "1"})
        await state.checkpoints.put(checkpoint, new_values={"x": TypedBytes("text", name.encode())})
    await state.episodes.start_session(AGENT, "empty")
    await state.episodes.append([Event(AgentId.parse(AGENT), SESSION, "note", {"of": name})])
    for agent in (AGENT, OTHER):
        await state.long_term.save(agent, f"{name} likes tea")
        await state.schedules.create(agent, "0 9 * * *", agent=agent, message=name)
    await state.vectors.add(
        [Document([TextBlock(f"{name}'s page")], id="d1", embedding=[1.0, 0.5])]
    )
    await state.graph.add_entities([Entity("person", {"name": name}, id="e1")])
    await state.channel("news").publish({"by": name})
    await state.items.put_many([ItemPut(("notes", "all"), "k1", {"by": name})])
    return ids


async def seen(state: State, ids: list[str]) -> dict[str, Any]:
    """Read everything that ``fill`` wrote, by store; what is not there is left out."""
    found: dict[str, Any] = {}
    for agent, session in PLACES:
        found[f"history {agent} {session}"] = await state.history.get_messages(
            agent, session_id=session
        )
    for session in (SESSION, ELSEWHERE, "empty"):
        found[f"session {session}"] = await state.episodes.get_session(session)
        found[f"state {session}"] = await state.short_term.get_state(session)
        found[f"thread {session}"] = await state.checkpoints.get(session)
    found["events"] = await state.episodes.recent(AGENT, types=["note"])
    for agent in (AGENT, OTHER):
        found[f"facts {agent}"] = [one.content for one in await state.long_term.list(agent)]
        found[f"schedule {agent}"] = await state.schedules.get(agent)
    found["documents"] = await state.vectors.get(["d1"])
    found["entity"] = await state.graph.find_entities(["e1"])
    found["channel"] = [one.event for one in await state.channel("news").read()]
    found["item"] = await state.items.get_many([ItemKey(("notes", "all"), "k1")])
    for one in ids:
        found[f"board {one}"] = await state.boards.get_task_list(one)
        found[f"task {one}"] = await state.tasks.get(one)
    return {name: value for name, value in found.items() if value not in (None, [], {}, [None])}
