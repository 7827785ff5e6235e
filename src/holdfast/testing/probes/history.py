"""Hostile input to a ``HistoryProvider``."""

from __future__ import annotations

from typing import Any

from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.content import ChatMessage, DataBlock, ToolUseBlock
from holdfast.values.identity import AgentId

CONTRACT = "history"
ANA = AgentId("", "ana")


async def _session(store: Any, value: Any) -> Any:
    await store.append(ANA, ChatMessage.user("x", name="echo"), session_id=value)
    messages = await store.get_messages(ANA, session_id=value)
    return value if [one.name for one in messages] == ["echo"] else messages


async def _agent(store: Any, value: Any) -> Any:
    await store.append(value, ChatMessage.user("x"), session_id="agents")
    return value if await store.count_messages(value, session_id="agents") == 1 else "lost"


async def _run(store: Any, value: Any) -> Any:
    await store.append(ANA, ChatMessage.user("x"), session_id="runs", run_id=value)
    before = await store.count_messages(ANA, session_id="runs")
    if value:
        await store.clear_run(ANA, session_id="runs", run_id=value)
        return value if await store.count_messages(ANA, session_id="runs") == before - 1 else "lost"
    return value


async def _last(store: Any, message: ChatMessage) -> ChatMessage:
    await store.append(ANA, message, session_id="s1")
    [last] = await store.get_messages(ANA, session_id="s1", recent_limit=1)
    assert isinstance(last, ChatMessage)
    return last


async def _message_id(store: Any, value: Any) -> Any:
    return (await _last(store, ChatMessage.user("x", id=value))).id


async def _name(store: Any, value: Any) -> Any:
    return (await _last(store, ChatMessage.user("x", name=value))).name


async def _text(store: Any, value: Any) -> Any:
    if not isinstance(value, str):
        # The helper takes a list of blocks too: as blocks these values are no blocks.
        value = [value]
    return (await _last(store, ChatMessage.user(value))).text


async def _metadata(store: Any, value: Any) -> Any:
    return (await _last(store, ChatMessage.user("x", metadata=value))).metadata


async def _data(store: Any, value: Any) -> Any:
    [block] = (await _last(store, ChatMessage.user([DataBlock(value)]))).content
    assert isinstance(block, DataBlock)
    return block.data


async def _tool_input(store: Any, value: Any) -> Any:
    call = ToolUseBlock(id="c1", name="search", input=value)
    return (await _last(store, ChatMessage.assistant([call]))).tool_uses[0].input


async def _read(store: Any, value: Any) -> Any:
    await store.get_messages(ANA, session_id=value)
    return NO_ECHO


async def _count(store: Any, value: Any) -> Any:
    await store.count_messages(value, session_id="s1")
    return NO_ECHO


async def _clear(store: Any, value: Any) -> Any:
    await store.clear(ANA, session_id=value)
    return NO_ECHO


async def _clear_run(store: Any, value: Any) -> Any:
    await store.clear_run(ANA, session_id="s1", run_id=value)
    return NO_ECHO


async def _pop(store: Any, value: Any) -> Any:
    await store.pop(ANA, session_id=value)
    return NO_ECHO


async def _pop_agent(store: Any, value: Any) -> Any:
    await store.pop(value, session_id="agents")
    return NO_ECHO


async def _replace(store: Any, session: str, messages: list[ChatMessage], **how: Any) -> Any:
    before = await store.get_messages(ANA, session_id=session)
    last = before[-1].seq if before else 0
    where = {"session_id": session, "after_seq": last, "expected_last_seq": last}
    await store.replace_tail(ANA, messages=messages, **where, **how)
    return (await store.get_messages(ANA, session_id=session))[-1]


async def _replace_session(store: Any, value: Any) -> Any:
    await _replace(store, value, [ChatMessage.user("x")])
    return value


async def _replace_id(store: Any, value: Any) -> Any:
    return (await _replace(store, "replaced", [ChatMessage.user("x", id=value)])).id


async def _replace_metadata(store: Any, value: Any) -> Any:
    new = ChatMessage.user("x", metadata=value)
    return (await _replace(store, "replaced", [new])).metadata


async def _replace_run(store: Any, value: Any) -> Any:
    await _replace(store, "replaced", [ChatMessage.user("x")], run_id=value)
    return value


PROBES = (
    Probe("append.session_id", "id", _session),
    Probe("append.agent_id", "id", _agent),
    Probe("append.run_id", "absent_id", _run),
    Probe("append.message.id", "id", _message_id),
    Probe("append.message.name", "text", _name),
    Probe("append.message.text", "text", _text),
    Probe("append.message.metadata", "object", _metadata),
    Probe("append.message.data", "json", _data),
    Probe("append.message.tool_use.input", "object", _tool_input),
    Probe("get_messages.session_id", "id", _read),
    Probe("count_messages.agent_id", "id", _count),
    Probe("pop.session_id", "id", _pop),
    Probe("pop.agent_id", "id", _pop_agent),
    Probe("replace_tail.session_id", "id", _replace_session),
    Probe("replace_tail.message.id", "id", _replace_id),
    Probe("replace_tail.message.metadata", "object", _replace_metadata),
    Probe("replace_tail.run_id", "absent_id", _replace_run),
    Probe("clear.session_id", "id", _clear),
    Probe("clear_run.run_id", "id", _clear_run),
)
