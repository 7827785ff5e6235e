"""A pydantic-ai agent whose conversation outlives the process: `python examples/pydantic_ai_agent.py [folder]`.

A test model takes the place of the language model.
"""  # noqa: E501 - the command stands in one line

from __future__ import annotations

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.models.test import TestModel

import holdfast
from holdfast.adapters.pydantic_ai import HoldfastConversations

agent = Agent(TestModel(custom_output_text="Low tide is at noon."))


async def main(url: str) -> None:
    """Two turns, each with a state of its own, as two processes would have."""
    for prompt in ("When is low tide?", "And tomorrow?"):
        async with holdfast.open(url) as state:
            store = HoldfastConversations(state.for_owner("ana"))
            conversation = await store.load("c1") or Conversation(conversation_id="c1")
            result = await agent.run(prompt, conversation=conversation)
            await store.save(result)
            print(len(result.conversation.messages), "messages")

    async with holdfast.open(url) as state:
        store = HoldfastConversations(state.for_owner("ana"))
        stale = await store.load("c1")
        await store.save(await agent.run("In a week?", conversation=await store.load("c1")))
        try:
            await store.save(await agent.run("In a month?", conversation=stale))
        except ConversationConflict:
            print("a second writer was refused")
        print(await HoldfastConversations(state.for_owner("ben")).load("c1"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "./memory"))
