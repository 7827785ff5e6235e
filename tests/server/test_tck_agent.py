"""The agent of the compatibility kit does what the kit's scenarios describe."""

from __future__ import annotations

import pytest
from a2a.types import a2a_pb2 as a2a

from holdfast import State
from tests.server.running import said, sent, serving, talking
from tests.server.tck_agent import app

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_agent_of_the_kit_does_each_scenario(state: State) -> None:
    async with (
        serving(app, state) as service,
        talking(service, streaming=False) as client,
    ):

        async def tell(prefix: str, **how: str) -> a2a.StreamResponse:
            [answer] = await sent(client, said("hello", message_id=f"{prefix}-1", **how))
            return answer

        done = await tell("tck-complete-task")
        assert done.task.status.message.parts[0].text == "Hello from TCK"
        for prefix, kind in (
            ("tck-artifact-text", "text"),
            ("tck-artifact-file", "raw"),
            ("tck-artifact-file-url", "url"),
            ("tck-artifact-data", "data"),
            ("tck-stream-001", "text"),
            ("tck-stream-artifact-file", "raw"),
        ):
            [artifact] = (await tell(prefix)).task.artifacts
            assert [part.WhichOneof("content") for part in artifact.parts] == [kind]
        [chunked] = (await tell("tck-stream-artifact-chunked")).task.artifacts
        assert "".join(part.text for part in chunked.parts) == "chunk-1 chunk-2"
        assert (await tell("tck-message-response")).HasField("message")
        rejected = (await tell("tck-reject-task")).task.status
        assert rejected.state == a2a.TASK_STATE_REJECTED

        asked = (await tell("tck-input-required")).task
        assert asked.status.state == a2a.TASK_STATE_INPUT_REQUIRED
        ended = await tell("tck-complete-task", task_id=asked.id)
        assert ended.task.status.state == a2a.TASK_STATE_COMPLETED
