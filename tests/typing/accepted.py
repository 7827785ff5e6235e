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
    TaskRecord,
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
    task = await state.tasks.submit("writer", ChatMessage.user("go"), owner=None, session_id=None)
    for owner in ("ana", None, ANY_OWNER):
        await state.tasks.get(task.id, owner=owner)
    await state.history.append("writer", ChatMessage.user("hi"), session_id="s1", run_id=None)


async def an_operator_asks_the_state(state: holdfast.State) -> int:
    assert (await state.ops.health()).status == "ok"
    return await state.ops.pending_events()


def a_script_opens_a_state_by_the_same_options() -> str:
    with holdfast.blocking.open("memory:", tenant="acme", background=False) as state:
        return state.tenant


def a_script_knows_every_store_and_its_results(state: holdfast.blocking.BlockingState) -> None:
    state.history.append("writer", ChatMessage.user("hello"), session_id="s1")
    messages: list[ChatMessage] = state.history.get_messages("writer", session_id="s1")
    state.for_tenant("acme").for_owner("ana").history.append("a", messages[0], session_id="s1")
    data: bytes = b"".join(state.blobs.open(state.blobs.store(b"x")))
    state.memory("writer").facts.save(data.decode(), topic="ana")
    state.channel("alerts").publish({"level": "high"})
    tasks: list[TaskRecord] = list(state.tasks.list(limit=5).tasks)
    for event in state.tasks.follow(tasks[0].id):
        seq: int = event.seq
        assert seq
    status: str = state.ops.health().status
    assert status


def a_script_runs_an_app(state: holdfast.blocking.BlockingState, app: holdfast.App) -> int:
    with state.worker(app, concurrency=2) as worker:
        assert worker.name
    return state.worker(app).run_until_idle()


def a_portal_runs_a_coroutine_with_its_type(portal: holdfast.blocking.Portal) -> int:
    return portal.run(an_operator_asks_the_state(portal.state))


def a_card_is_the_seeds_task(card: Card) -> Task:
    return card


def a_store_is_what_was_asked_for(state: holdfast.State) -> tuple[HistoryProvider, LongTermMemory]:
    return state.history, state.long_term


async def a_handler_has_every_store(task: TaskContext) -> None:
    await task.stores.history.append("writer", ChatMessage.user("hi", name="ana"), session_id="s1")
    await task.stores.episodes.append([Event(AgentId.parse("writer"), "s1", "note", {"a": 1})])
