"""What a type checker refuses: each line with the code of its error."""

from __future__ import annotations

import holdfast
import holdfast.blocking
from holdfast import ChatMessage


async def typing_errors(state: holdfast.State) -> None:
    await state.history.append(7, ChatMessage.user("hello"), session_id="s1")  # expect: arg-type
    await state.history.append("writer", "hello", session_id="s1")  # expect: arg-type
    await state.history.append("writer", ChatMessage.user("hello"))  # expect: call-arg
    holdfast.TextBlock("hello")  # expect: attr-defined
    ChatMessage.user("hello", nmae="ana")  # expect: call-arg
    await state.memory("writer").facts.save("Ana sails", topik="ana")  # expect: call-arg
    await state.memory("writer").recall("boats", k=3)  # expect: call-arg
    await state.history.get_messages("writer", session_id="s1", last=3)  # expect: call-arg
    [session] = await state.episodes.list_sessions("writer")
    await state.episodes.list_sessions("writer", cursor=session)  # expect: arg-type
    task = await state.tasks.submit(
        "writer",
        ChatMessage.user("hello"),
        owner=holdfast.ANY_OWNER,  # expect: arg-type
    )
    await state.tasks.get(task.id, owner=7)  # expect: arg-type
    await state.tasks.get_context("c1", owner=holdfast.ANY_OWNER)  # expect: arg-type
    await state.pending_events()  # expect: attr-defined
    holdfast.blocking.open("memory:", tennant="acme")  # expect: call-arg
    await state.short_term.set_state("s1", ["a"])  # expect: arg-type


def blocking_errors(state: holdfast.blocking.BlockingState, app: holdfast.App) -> None:
    state.history.append("writer", "hello", session_id="s1")  # expect: arg-type
    state.history.apend("writer")  # expect: attr-defined
    text: str = state.history.get_messages("writer", session_id="s1")  # expect: assignment
    state.memory("writer").facts.save("Ana sails", topik="ana")  # expect: call-arg
    state.worker(app, concurency=2)  # expect: call-arg
    state.aclose()  # expect: attr-defined
    state.blobs.resolve(text).decode().nothing()  # expect: attr-defined
