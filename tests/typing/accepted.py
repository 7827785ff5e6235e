"""What a type checker accepts."""

from __future__ import annotations

import holdfast
import holdfast.blocking
from holdfast import (
    ANY_OWNER,
    AgentId,
    Card,
    ChatMessage,
    Event,
    HistoryProvider,
    LongTermMemory,
    Task,
    TaskContext,
)


async def an_agent_is_text_or_an_id(state: holdfast.State) -> None:
    for agent in ("writer", AgentId("writer", "ana")):
        await state.history.append(agent, ChatMessage.user("hello"), session_id="s1")
        await state.history.get_messages(agent, session_id="s1", recent_limit=20)
        await state.episodes.recent(agent, limit=5)
        await state.memory(agent).hydrate(limit=5, recent_limit=20)
        sessions = await state.episodes.list_sessions(agent)
        await state.episodes.list_sessions(agent, cursor=sessions[-1].cursor)
        await state.graph.get_neighbors("a", limit=10)
        await state.tasks.list(limit=5, messages_limit=1)
        await state.episodes.start_session(agent)
        await state.long_term.save(agent, "Ana sails")
        await state.tasks.submit(agent, ChatMessage.user("go"))
        await state.memory(agent).facts.save("Ana sails", topic="ana")


async def an_owner_is_text_none_or_any(state: holdfast.State) -> None:
    task = await state.tasks.submit("writer", ChatMessage.user("go"), owner=None, context_id=None)
    for owner in ("ana", None, ANY_OWNER):
        await state.tasks.get(task.id, owner=owner)
    await state.history.append("writer", ChatMessage.user("hi"), session_id="s1", run_id=None)


async def an_operator_asks_the_state(state: holdfast.State) -> int:
    assert (await state.ops.health()).status == "ok"
    return await state.ops.pending_events()


def a_script_opens_a_state_by_the_same_options() -> str:
    with holdfast.blocking.open("memory:", tenant="acme", background=False) as state:
        return str(state.tenant)


def a_card_is_the_seeds_task(card: Card) -> Task:
    return card


def a_store_is_what_was_asked_for(state: holdfast.State) -> tuple[HistoryProvider, LongTermMemory]:
    return state.history, state.long_term


async def a_handler_has_every_store(task: TaskContext) -> None:
    await task.stores.history.append("writer", ChatMessage.user("hi", name="ana"), session_id="s1")
    await task.stores.episodes.append([Event(AgentId.parse("writer"), "s1", "note", {"a": 1})])
