"""A history provider of Microsoft Agent Framework on ``state.history``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent_framework import HistoryProvider, Message

from holdfast.adapters.keys import key_of
from holdfast.blocking import Portal
from holdfast.values.codec import encode_json
from holdfast.values.content import ROLES, ChatMessage, Role, TextBlock
from holdfast.values.identity import Agent, AgentId
from holdfast.wiring.state import State

_RAW = "agent_framework"
"""The metadata key of the framework's own message."""


class HoldfastHistory(HistoryProvider):
    """Stores the messages of sessions, for ``Agent(context_providers=[...])``.

    ``state`` determines the engine, the tenant and the owner, and ``agent`` whose transcript it is:
    recall over that agent finds the messages. Providers with another ``source_id`` do not mix. Any
    event loop may use it. ::

        history = HoldfastHistory(state, agent="support")
        agent = Agent(client=client, context_providers=[history])
        await agent.run("Which tide?", session=agent.create_session(session_id="s1"))
    """

    def __init__(
        self,
        state: State | Portal,
        *,
        agent: Agent = "agent-framework",
        source_id: str = "holdfast",
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._agent = AgentId.parse(agent)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, in the order in which they were saved."""
        del state, kwargs
        found = await self._portal.arun(self._read(self._session(session_id)))
        return [Message.from_dict(one.metadata[_RAW]) for one in found if _RAW in one.metadata]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages, all or none. A message whose id was saved before is not added again."""
        del state, kwargs
        rows = [_stored(one) for one in messages]
        await self._portal.arun(self._append(self._session(session_id), rows))

    # A state's stores are read on its own loop, so both of these run there.

    async def _read(self, session: str) -> list[ChatMessage]:
        return await self._portal.state.history.get_messages(self._agent, session_id=session)

    async def _append(self, session: str, rows: list[ChatMessage]) -> None:
        await self._portal.state.history.append_many(self._agent, rows, session_id=session)

    def _session(self, session_id: str | None) -> str:
        return key_of(self.source_id, *([] if session_id is None else [session_id]))


def _stored(message: Message) -> ChatMessage:
    """Return a message with the text for recall, and the framework's message in its metadata."""
    role: Role = message.role if message.role in ROLES else "assistant"
    raw = message.to_dict()
    made = ChatMessage(role, [TextBlock(message.text or "")], metadata={_RAW: raw})
    if not message.message_id:
        return made
    # Parts of one response may have one id: it is the same message only if all of it is the same.
    digest = hashlib.sha256(encode_json(raw, field="messages").encode()).hexdigest()
    return replace(made, id=key_of(message.message_id, digest))
