"""An agent that remembers: each run is a session of its own, in a process of its own.

    python examples/remembering_agent.py ./memory "My sister keeps bees near Lyon."
    python examples/remembering_agent.py ./memory "The train leaves at nine."
    python examples/remembering_agent.py ./memory "Who could give me some honey?"

The third run finds what was said in the first by its meaning: no word of it is in the question. The
place of the language model is taken by a few lines, so that it runs offline.
"""

from __future__ import annotations

import asyncio
import sys

import holdfast
from holdfast import AgentMemory, Assembled, ChatMessage
from holdfast.engines.embedders.static import StaticEmbedder


async def main(folder: str, said: str) -> None:
    """One session: wake up, listen, remember, answer."""
    async with holdfast.open(folder, embedder=StaticEmbedder()) as state:
        session = f"session-{holdfast.new_id()}"
        memory = state.memory("companion/ana", session_id=session)

        woken = await memory.hydrate()
        print(f"woke up: {woken.status}")
        for hit in await memory.recall(said, 1, types=["message"]):
            print(f"remembers: {hit.event.to_message().text} (by {' and '.join(hit.found_by)})")

        context = await memory.assemble(said, budget_tokens=500)
        await memory.record("message", ChatMessage.user(said, name="Ana"))
        await answer(memory, context)
        await memory.state.update({"turns": 1})
        print(f"prompt: {context.tokens} of {context.budget_tokens} tokens")


async def answer(memory: AgentMemory, context: Assembled) -> None:
    """Where a model would be asked with ``context.messages``."""
    known = "\n".join(message.text for message in context.messages)
    reply = "I remember something about that." if known else "Good to know."
    await memory.record("decision", {"reply": reply, "used": len(context.kept)})
    print(f"says: {reply}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f'usage: python {sys.argv[0]} FOLDER "what you say"')
    asyncio.run(main(*sys.argv[1:]))
