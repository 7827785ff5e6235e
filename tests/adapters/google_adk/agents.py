"""An agent whose model counts what it reads; and programs that run in processes of their own."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import holdfast
from holdfast import State
from holdfast.adapters.google_adk import (
    HoldfastArtifactService,
    HoldfastMemoryService,
    HoldfastSessionService,
)

APP = "tides"


async def note(text: str, tool_context: ToolContext) -> dict[str, Any]:
    """Write something down: in an artifact, and in states of three scopes."""
    version = await tool_context.save_artifact("note.txt", types.Part(text=text))
    state = tool_context.state
    state["noted"], state["user:notes"], state["temp:draft"] = text, version + 1, text
    found = await tool_context.search_memory("harbour")
    return {"version": version, "remembered": len(found.memories)}


class Model(BaseLlm):
    """Calls the tool for a prompt, and then answers with how many contents it was sent."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """Return one response."""
        del stream
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            call = types.FunctionCall(name="note", args={"text": last.text})
            part = types.Part(function_call=call)
        else:
            remembered = last.function_response.response["remembered"]
            part = types.Part(text=f"read {len(llm_request.contents)}, remembered {remembered}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def runner(state: State) -> Runner:
    """A runner with all three services."""
    agent = LlmAgent(name="pilot", model=Model(model="none"), tools=[note], output_key="said")
    return Runner(
        app_name=APP,
        agent=agent,
        session_service=HoldfastSessionService(state),
        memory_service=HoldfastMemoryService(state),
        artifact_service=HoldfastArtifactService(state),
    )


async def turn(url: str, tenant: str, prompt: str) -> None:
    """Run one turn of the session ``s1``, and print the answer."""
    async with holdfast.open(url, tenant=tenant) as state:
        running = runner(state)
        where = {"app_name": APP, "user_id": "ana", "session_id": "s1"}
        if await running.session_service.get_session(**where) is None:
            await running.session_service.create_session(**where)
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        async for event in running.run_async(user_id="ana", session_id="s1", new_message=message):
            if event.is_final_response():
                print(event.content.parts[0].text, flush=True)  # noqa: T201 - the test reads it
        session = await running.session_service.get_session(**where)
        await running.memory_service.add_session_to_memory(session)


async def count(url: str, tenant: str) -> None:
    """Append numbers for ever, and print each one that was acknowledged."""
    async with holdfast.open(url, tenant=tenant) as state:
        service = HoldfastSessionService(state)
        session = await service.create_session(app_name=APP, user_id="ana", session_id="s1")
        for at in itertools.count():
            delta = {"n": at, "user:n": at, "app:n": at}
            event = Event(author="user", actions=EventActions(state_delta=delta))
            await service.append_event(session, event)
            print(at, flush=True)  # noqa: T201 - the test reads it


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    asyncio.run(turn(*arguments) if program == "turn" else count(*arguments))
