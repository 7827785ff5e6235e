"""A request handler of the SDK with an agent that makes an artifact in two chunks."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import TaskUpdater
from a2a.types import a2a_pb2 as pb

import holdfast
from examples.a2a_sdk_agent import CARD, message
from holdfast import State, TaskRecord
from holdfast.adapters.a2a import (
    HoldfastEventStream,
    HoldfastPushStore,
    HoldfastTaskStore,
    HoldfastVersionedTaskStore,
)
from tests.adapters.a2a.users import ANA


class Agent(AgentExecutor):
    """Writes half of it, waits if it is told to, and writes the rest."""

    def __init__(self, wait: asyncio.Event | None = None) -> None:
        self.wait = wait
        self.halfway = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Make the artifact."""
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(updater.new_agent_message([pb.Part(text="one moment")]))
        await updater.add_artifact([pb.Part(text="low tide ")], "a1", name="tides")
        self.halfway.set()
        if self.wait is not None:
            await self.wait.wait()
        await updater.add_artifact([pb.Part(text="at noon")], "a1", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Stop."""
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def handler(state: Any, agent: Agent, *, versioned: bool = True) -> DefaultRequestHandler:
    """A replica that serves the agent."""
    if versioned:
        return DefaultRequestHandler(
            agent,
            HoldfastVersionedTaskStore(state),
            CARD,
            push_config_store=HoldfastPushStore(state),
            event_stream=HoldfastEventStream(state),
        )
    return DefaultRequestHandler(
        agent, HoldfastTaskStore(state), CARD, push_config_store=HoldfastPushStore(state)
    )


async def with_artifact(state: State) -> TaskRecord:
    """The one task, once it has an artifact."""
    while True:
        await asyncio.sleep(0)
        for task in (await state.tasks.list(artifacts=True)).tasks:
            if task.artifacts:
                return task


async def main(url: str, tenant: str) -> None:
    """Get to the middle of a task, and hang."""
    agent = Agent(asyncio.Event())
    state: State
    async with holdfast.open(url, tenant=tenant) as state:
        sending = asyncio.ensure_future(
            handler(state, agent).on_message_send(message("tide?"), ANA)
        )
        await agent.halfway.wait()
        task = await with_artifact(state)
        print(task.id, flush=True)  # noqa: T201 - the parent waits for it
        await sending


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
