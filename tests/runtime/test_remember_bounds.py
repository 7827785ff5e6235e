"""However much was said in tasks, it is copied into the session logs in pieces that fit memory."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import App, ChatMessage, Settings, State, TaskContext
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
WORD = "x" * 1_000


async def test_what_is_to_be_copied_is_read_within_so_many_bytes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engines.postgres.tasks.context._MOST_BYTES", 2_500)
    settings = Settings(max_connections=6)
    async with holdfast.open(database, tenant=new_ref(), settings=settings) as state:
        made = []
        for at in range(5):
            said = ChatMessage.user(f"{at} {WORD}")
            task = await state.tasks.submit("writer", said, session_id="c1")
            made.append((await state.tasks.cancel(task.id)).id)
        newest = await state.tasks.context_messages("c1", agents=["writer"])
        assert [one.task_id for one in newest] == made[-2:]
        seen = []
        while page := await state.tasks.resting_messages(agents=["writer"]):
            assert 1 <= len(page) <= 2
            seen += [one.task_id for one in page]
            await state.tasks.mark_copied([(one.task_id, one.version) for one in page])
        assert seen == made


async def test_all_of_it_is_copied(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engines.postgres.tasks.context._MOST_BYTES", 2_500)
    app = App("writer")

    @app.handler
    async def work(task: TaskContext) -> str:
        return f"heard {task.message.text[:1]}"

    settings = Settings(max_connections=6)
    async with holdfast.open(database, tenant=new_ref(), settings=settings) as state:
        for at in range(8):
            await app.submit(state, f"{at} {WORD}", session_id="c1")
        await app.run_until_idle(state)
        texts = [one.text for one in await state.history.get_messages(app.agent, session_id="c1")]
        assert sorted(texts) == sorted(
            [f"{at} {WORD}" for at in range(8)] + [f"heard {at}" for at in range(8)]
        )


async def test_a_long_message_that_is_not_copied_hides_none_of_its_context(state: State) -> None:
    contexts = [(f"c{at}", None) for at in range(100)]
    for session_id, _ in contexts:
        await state.tasks.submit("writer", ChatMessage.user("tide"), session_id=session_id)
    # Of an agent that is not asked for; two of them exceed what one context of a hundred may take.
    for _ in range(2):
        long = ChatMessage.user("x" * 200_000)
        await state.tasks.submit("reader", long, session_id="c7")
    found = await state.tasks.messages_of_contexts(contexts, agents=["writer"])
    assert sorted((one.session_id, one.message.text) for one in found) == sorted(
        (session_id, "tide") for session_id, _ in contexts
    )
