"""A handler that answers with a message instead of a task, as clients see it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from a2a.types import a2a_pb2 as a2a

from holdfast import App, Reply, State, TaskContext
from tests.server.running import MODERN, http_client, said, sent, serving, talking

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"]),
]
PATIENT: dict[str, Any] = {"reply_seconds": 60.0}
"""However slow the machine is, the stream waits for the handler."""


def _app(gate: asyncio.Event | None = None) -> App:
    app = App("chat")

    @app.handler
    async def chat(task: TaskContext) -> Reply | str:
        """Replies, unless there is work to do."""
        word, _, rest = task.message.text.partition(" ")
        if word == "work":
            return str(await task.step("work", lambda: rest))
        if word == "wait" and gate is not None:
            await gate.wait()
        return task.reply(f"you said {rest}")

    return app


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_reply_is_a_message_and_nothing_else(
    state: State, binding: str, streaming: bool
) -> None:
    async with (
        serving(_app(), state, **PATIENT) as service,
        talking(service, binding=binding, streaming=streaming) as client,
    ):
        [answer] = await sent(client, said("say hello", context_id="c1"))
        assert answer.HasField("message")
        assert answer.message.parts[0].text == "you said hello"
        assert answer.message.role == a2a.ROLE_AGENT
        assert (answer.message.context_id, answer.message.task_id) == ("c1", "")

        # The ledger has the task, under the id in the metadata.
        task = await client.get_task(
            a2a.GetTaskRequest(id=answer.message.metadata["holdfast.task"])
        )
        assert task.status.state == a2a.TASK_STATE_COMPLETED
        assert task.status.message.message_id == answer.message.message_id
        assert [one.parts[0].text for one in task.history] == ["say hello", "you said hello"]
        listed = await client.list_tasks(a2a.ListTasksRequest(context_id="c1"))
        assert [one.id for one in listed.tasks] == [task.id]


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_same_handler_can_work_instead(
    state: State, binding: str, streaming: bool
) -> None:
    async with (
        serving(_app(), state, **PATIENT) as service,
        talking(service, binding=binding, streaming=streaming) as client,
    ):
        events = await sent(client, said("work hard"))
        assert events[0].HasField("task")
        assert not any(one.HasField("message") for one in events)


async def test_a_send_that_is_repeated_gets_the_same_message(state: State, binding: str) -> None:
    gate = asyncio.Event()
    paths = {"JSONRPC": "/", "HTTP+JSON": "/message:send"}
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "wait for me"}]}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    body: dict[str, Any] = rpc if binding == "JSONRPC" else {"message": message}
    headers = MODERN | {"Idempotency-Key": "k1"}
    async with (
        serving(_app(gate), state) as service,
        http_client(base_url=service.url, headers=headers, timeout=60) as http,
    ):

        async def send() -> dict[str, Any]:
            reply_text: dict[str, Any] = (await http.post(paths[binding], json=body)).json()
            found: dict[str, Any] = reply_text.get("result", reply_text)["message"]
            return found

        waiting = [asyncio.create_task(send()) for _ in range(3)]
        gate.set()
        first, *others = [await one for one in waiting]
        assert first["parts"] == [{"text": "you said for me"}]
        assert others == [first, first]
        assert await send() == first
        assert (await state.tasks.list(count=True)).total == 1


async def test_a_stream_that_cannot_wait_shows_the_task(state: State, binding: str) -> None:
    gate = asyncio.Event()
    async with (
        serving(_app(gate), state, reply_seconds=0.0) as service,
        talking(service, binding=binding) as client,
    ):
        stream = client.send_message(said("wait a while"))
        first = await anext(stream)
        assert first.HasField("task")
        gate.set()
        rest = [event async for event in stream]
        assert rest[-1].status_update.status.state == a2a.TASK_STATE_COMPLETED
        assert rest[-1].status_update.status.message.parts[0].text == "you said a while"


async def test_a_send_that_does_not_wait_gets_the_task(state: State, binding: str) -> None:
    now = a2a.SendMessageConfiguration(return_immediately=True)
    async with (
        serving(_app(), state, workers=0) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        [answer] = await sent(client, said("say hello", configuration=now))
        assert answer.task.status.state == a2a.TASK_STATE_SUBMITTED


async def test_a_client_of_0_3_gets_the_message_too(state: State, binding: str) -> None:
    async with (
        serving(_app(), state) as service,
        http_client(base_url=service.url, timeout=60) as http,
    ):
        if binding == "JSONRPC":
            said_old = {
                "kind": "message",
                "messageId": "m1",
                "role": "user",
                "parts": [{"kind": "text", "text": "say hello"}],
            }
            params = {"message": said_old}
            rpc = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
            reply_text = (await http.post("/", json=rpc)).json()["result"]
            assert (reply_text["kind"], reply_text["parts"][0]["text"]) == (
                "message",
                "you said hello",
            )
        else:
            parts = [{"text": "say hello"}]
            message = {"messageId": "m1", "role": "ROLE_USER", "content": parts}
            reply_text = (await http.post("/v1/message:send", json={"message": message})).json()
            inner = reply_text.get("message") or reply_text.get("msg")
            assert inner["content"][0]["text"] == "you said hello"
