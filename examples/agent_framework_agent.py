"""An agent of Microsoft Agent Framework that remembers: `python examples/agent_framework_agent.py [folder]`.

A class takes the place of the language model.
"""  # noqa: E501 - the command stands in one line

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

import holdfast
from holdfast.adapters.agent_framework import HoldfastHistory


class Model(BaseChatClient[Any]):
    """Says how many messages it was sent."""

    def _inner_get_response(self, *, messages: Any, **_options: Any) -> Any:
        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [f"I read {len(messages)}."])])

        return answer()


async def main(url: str) -> None:
    """Two turns, each with a state of its own, as two processes would have."""
    for prompt in ("When is low tide in Riga?", "And tomorrow?"):
        async with holdfast.open(url) as state:
            history = HoldfastHistory(state.for_owner("ana"), agent="pilot")
            agent: Any = Agent(client=Model(), context_providers=[history])
            session = agent.create_session(session_id="s1")
            print((await agent.run(prompt, session=session)).text)

    async with holdfast.open(url) as state:
        [found] = await state.for_owner("ana").episodes.recall("pilot", "Riga", limit=1)
        print("recalled:", found.event.to_message().text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "./memory"))
