"""An agent of the OpenAI Agents SDK whose session is in Holdfast: it goes on in another process.

    python examples/openai_agents_agent.py ./memory

Needs the extras openai and embedded. The place of the language model is taken by a script, so that
it runs offline.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

import holdfast
from holdfast.adapters.openai_agents import CompactingSession, HoldfastSession


def tide(harbour: str) -> str:
    """When the water is high."""
    return f"high tide in {harbour} at 14:20"


def agent(*steps: Any) -> Agent:
    """An agent with a tool; the steps are what the model would say."""
    return Agent(name="pilot", tools=[function_tool(tide)], model=ScriptedModel(steps))


async def compact(items: list[Any]) -> list[Any]:
    """Where `client.responses.compact` would be asked."""
    return [{"role": "system", "content": f"A summary of {len(items)} items."}]


async def main(folder: str) -> None:
    """Ask in one life of the process, ask on in the next."""
    async with holdfast.open(folder, tenant="acme") as state:
        session = HoldfastSession("chat-1", state.for_owner("ana"))
        first = agent(
            [function_call("tide", {"harbour": "Brest"}, call_id="c1")],
            [assistant_message("At 14:20.")],
        )
        result = await Runner.run(first, "When is high tide in Brest?", session=session)
        print(result.final_output)

    async with holdfast.open(folder, tenant="acme") as state:
        ana = state.for_owner("ana")
        session = HoldfastSession("chat-1", ana)
        second = agent([assistant_message("You are welcome.")])
        await Runner.run(second, "Thanks!", session=session)
        print("items:", len(await session.get_items()))

        undone = await session.pop_item()
        print("undone:", undone["role"] if undone else None)
        [hit] = await ana.episodes.recall("openai-agents", "Brest tide", limit=1)
        print("recalled:", hit.event.to_message().text)

        session = CompactingSession("chat-1", ana, compact=compact)
        await session.run_compaction({"force": True})
        print((await session.get_items())[0]["content"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} FOLDER")
    set_tracing_disabled(disabled=True)
    asyncio.run(main(sys.argv[1]))
