"""An agent of the A2A SDK whose tasks are in Holdfast: two replicas serve it, and one is replaced.

    python examples/a2a_sdk_agent.py ./tasks

Needs the extras server and embedded. A function takes the place of the language model, and requests
are made without HTTP.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import TaskUpdater
from a2a.types import a2a_pb2 as pb

import holdfast
from holdfast.adapters.a2a import (
    HoldfastEventStream,
    HoldfastPushStore,
    HoldfastVersionedTaskStore,
)

CARD = pb.AgentCard(
    name="tides",
    description="Answers when the tide is low.",
    version="1",
    capabilities=pb.AgentCapabilities(streaming=True, push_notifications=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[pb.AgentSkill(id="tides", name="tides", description="tides", tags=["sea"])],
    supported_interfaces=[
        pb.AgentInterface(
            url="http://localhost", protocol_binding="JSONRPC", protocol_version="1.0"
        )
    ],
)


class Tides(AgentExecutor):
    """Asks for the day if it is not told."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer a message, which may be the answer to a question."""
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if "tomorrow" not in context.get_user_input():
            question = updater.new_agent_message([pb.Part(text="On which day?")])
            await updater.requires_input(question)
            return
        await updater.add_artifact([pb.Part(text="low tide at noon")], name="tides")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Stop."""
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def replica(state: holdfast.State) -> DefaultRequestHandler:
    """A request handler as the SDK has it, with four arguments of ours."""
    return DefaultRequestHandler(
        agent_executor=Tides(),
        agent_card=CARD,
        task_store=HoldfastVersionedTaskStore(state, agent="tides"),
        event_stream=HoldfastEventStream(state),
        push_config_store=HoldfastPushStore(state),
    )


def message(text: str, task: pb.Task | None = None) -> pb.SendMessageRequest:
    """A message of a user, to a new task or to one that asked."""
    said = pb.Message(message_id=text, role=pb.ROLE_USER, parts=[pb.Part(text=text)])
    if task is not None:
        said.task_id, said.context_id = task.id, task.context_id
    return pb.SendMessageRequest(message=said)


async def main(folder: str) -> None:
    """Ask one replica, answer to the next one."""
    call = ServerCallContext()
    async with holdfast.open(folder) as state, aclosing(replica(state)) as handler:
        asked = await handler.on_message_send(message("When is low tide?"), call)
        assert isinstance(asked, pb.Task)
        print("the agent asks:", asked.status.message.parts[0].text)

    async with holdfast.open(folder) as state, aclosing(replica(state)) as handler:
        done = await handler.on_message_send(message("tomorrow", asked), call)
        assert isinstance(done, pb.Task)
        print("the next process answers:", done.artifacts[0].parts[0].text)

        stored = await state.tasks.get(done.id)
        assert stored is not None
        print("in the ledger:", stored.state.value, [one.text for one in stored.messages])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "./tasks"))
