"""The history provider: what an agent said comes back, for each session, tenant and owner."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import pytest
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, Message

import holdfast
from holdfast import State
from holdfast.adapters.agent_framework import HoldfastHistory
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Model(BaseChatClient[Any]):
    """Answers with how many messages it was sent."""

    def _inner_get_response(self, *, messages: Any, **_options: Any) -> Any:
        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [f"low tide {len(messages)}"])])

        return answer()


def _texts(messages: list[Message]) -> list[str]:
    return [f"{one.role}: {one.text}" for one in messages]


async def test_an_agent_goes_on_where_another_process_left(state: State) -> None:
    for turn in range(2):
        agent: Any = Agent(client=Model(), context_providers=[HoldfastHistory(state)])
        session = agent.create_session(session_id="s1")
        answer = await agent.run(f"tide {turn}?", session=session)
        assert answer.text == f"low tide {2 * turn + 1}"
    found = await HoldfastHistory(state).get_messages("s1")
    assert _texts(found) == [
        *("user: tide 0?", "assistant: low tide 1"),
        *("user: tide 1?", "assistant: low tide 3"),
    ]


async def test_messages_come_back_as_they_were(state: State) -> None:
    history = HoldfastHistory(state)
    call = Content.from_function_call("call-1", "tides", arguments={"port": "Brest"})
    result = Content.from_function_result("call-1", result="low at noon")
    messages = [
        Message("system", ["be brief"]),
        Message("user", ["Which tide?", "Now."], author_name="ana", message_id="m1"),
        Message("assistant", [call], additional_properties={"model": "none"}),
        Message("tool", [result]),
        Message("developer", ["\x00 odd \u2028 text"]),
        Message("assistant", []),
    ]
    await history.save_messages("s1", messages)
    found = await history.get_messages("s1")
    assert [one.to_dict() for one in found] == [one.to_dict() for one in messages]


async def test_a_save_that_is_repeated_adds_no_message_with_an_id(state: State) -> None:
    history = HoldfastHistory(state)
    twice = [Message("user", ["tide?"], message_id="m1"), Message("user", ["now"], message_id="m1")]
    for _ in range(2):
        await history.save_messages("s1", twice)
    assert _texts(await history.get_messages("s1")) == ["user: tide?", "user: now"]


async def test_sessions_providers_tenants_and_owners_are_apart(state: State) -> None:
    await HoldfastHistory(state.for_owner("ana")).save_messages("s1", [Message("user", ["hers"])])
    await HoldfastHistory(state).save_messages(None, [Message("user", ["nobody's"])])
    others = [
        (HoldfastHistory(state.for_owner("ben")), "s1"),
        (HoldfastHistory(state.for_tenant(new_ref()).for_owner("ana")), "s1"),
        (HoldfastHistory(state.for_owner("ana"), source_id="audit"), "s1"),
        (HoldfastHistory(state.for_owner("ana")), "s2"),
        (HoldfastHistory(state.for_owner("ana")), None),
        (HoldfastHistory(state), "s1"),
        (HoldfastHistory(state), ""),
    ]
    for history, session in others:
        assert await history.get_messages(session) == []
    assert _texts(await HoldfastHistory(state).get_messages(None)) == ["user: nobody's"]


async def test_recall_finds_what_was_said(state: State) -> None:
    await HoldfastHistory(state, agent="pilot").save_messages(
        "s1", [Message("user", ["the harbour of Riga"])]
    )
    [found] = await state.episodes.recall("pilot", "harbour")
    assert found.event.to_message().text == "the harbour of Riga"


async def test_writers_at_once_lose_nothing(state: State) -> None:
    writers = [HoldfastHistory(state), HoldfastHistory(state)]
    await asyncio.gather(
        *(writers[at % 2].save_messages("s1", [Message("user", [str(at)])]) for at in range(20))
    )
    found = await HoldfastHistory(state).get_messages("s1")
    assert sorted(int(one.text) for one in found) == list(range(20))


async def test_any_thread_and_loop_may_use_it(database: str) -> None:
    def of_a_thread(history: HoldfastHistory, name: str) -> None:
        asyncio.run(history.save_messages("s1", [Message("user", [name])]))

    with Portal.open(database, tenant=new_ref()) as portal:
        history = HoldfastHistory(portal)
        await asyncio.gather(
            *(asyncio.to_thread(of_a_thread, history, name) for name in ("a", "b", "c"))
        )
        await history.save_messages("s1", [Message("user", ["d"])])
        found = await history.get_messages("s1")
    assert sorted(one.text for one in found) == ["a", "b", "c", "d"]


async def test_what_was_saved_is_there_after_kill_9(database: str) -> None:
    tenant = new_ref()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.agent_framework.worker", database, tenant),
        stdout=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    assert worker.stdout is not None
    acknowledged = [(await worker.stdout.readline()).decode().strip() for _ in range(5)]
    worker.send_signal(signal.SIGKILL)
    more, _ = await worker.communicate()
    acknowledged += more.decode().split()
    async with holdfast.open(database, tenant=tenant) as state:
        found = [one.text for one in await HoldfastHistory(state).get_messages("s1")]
    assert acknowledged == found[: len(acknowledged)]
    assert len(found) <= len(acknowledged) + 1


async def test_a_message_that_cannot_be_stored_is_named_and_nothing_is_written(
    state: State,
) -> None:
    history = HoldfastHistory(state)
    huge = Message("user", ["x" * 2_000_000])
    with pytest.raises(holdfast.errors.InvalidInputError, match=r"messages\[1\]"):
        await history.save_messages("s1", [Message("user", ["tide?"]), huge])
    assert await history.get_messages("s1") == []
