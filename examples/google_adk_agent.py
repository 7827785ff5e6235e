"""An agent of Google ADK that remembers: `python examples/google_adk_agent.py [folder]`.

A class takes the place of the language model.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai import types

import holdfast
from holdfast.adapters.google_adk import (
    HoldfastArtifactService,
    HoldfastMemoryService,
    HoldfastSessionService,
)

NAMES: dict[str, Any] = {"app_name": "tides", "user_id": "ana", "session_id": "s1"}


class Model(BaseLlm):
    """Says how many contents it was sent."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield one response."""
        del stream
        text = f"I read {len(llm_request.contents)}."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main(url: str) -> None:
    """Two turns, each with a state of its own, as two processes would have."""
    agent = LlmAgent(name="pilot", model=Model(model="none"), output_key="user:said")
    for prompt in ("When is low tide in Riga?", "And tomorrow?"):
        async with holdfast.open(url) as state:
            runner = Runner(
                app_name="tides",
                agent=agent,
                session_service=HoldfastSessionService(state),
                memory_service=HoldfastMemoryService(state),
                artifact_service=HoldfastArtifactService(state),
                auto_create_session=True,
            )
            message = types.Content(role="user", parts=[types.Part(text=prompt)])
            async for event in runner.run_async(
                user_id="ana", session_id="s1", new_message=message
            ):
                print(event.content.parts[0].text)

    async with holdfast.open(url) as state:
        session: Any = await HoldfastSessionService(state).get_session(**NAMES)
        memory = HoldfastMemoryService(state)
        await memory.add_session_to_memory(session)
        found = await memory.search_memory(app_name="tides", user_id="ana", query="Riga")
        print("state:", session.state)
        print("remembered:", found.memories[0].content.parts[0].text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "./memory"))
