"""A request that is sent again over HTTP: its message is built again and is stored once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast import App, ChatMessage, State, TaskContext
from holdfast.errors import ConflictError
from holdfast.server.service import listening
from holdfast.values.ids import new_ref
from tests.server.running import MODERN, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = App("inbox").agent


@asynccontextmanager
async def _inbox(state: State) -> AsyncIterator[str]:
    """A service of somebody's own, which appends what it is sent; its address."""

    async def take(request: Request) -> JSONResponse:
        body = await request.json()
        # The client gives the id; the message and its time are made for each request.
        message = ChatMessage.user(body["text"], id=body["id"])
        try:
            await state.history.append(AGENT, message, session_id="s1")
            noted = await state.memory(AGENT, session_id="s1").record(
                "note", {"text": body["text"]}, event_id=f"note-{body['id']}"
            )
        except ConflictError as error:
            return JSONResponse({"conflict": error.key}, 409)
        return JSONResponse({"seq": noted.seq, "at": noted.occurred_at.isoformat()})

    app = Starlette(routes=[Route("/messages", take, methods=["POST"])])
    with listening("127.0.0.1", 0) as sock:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        run = asyncio.create_task(server._serve([sock]))
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}/messages"
        finally:
            server.should_exit = True
            async with asyncio.timeout(60):
                await run


async def test_a_message_that_is_posted_again_is_answered_as_the_first(state: State) -> None:
    async with _inbox(state) as url, http_client(timeout=60) as http:
        first = await http.post(url, json={"id": "m1", "text": "hello"})
        again = await http.post(url, json={"id": "m1", "text": "hello"})
        other = await http.post(url, json={"id": "m1", "text": "something else"})
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert (other.status_code, other.json()) == (409, {"conflict": "m1"})
    [message] = await state.history.get_messages(AGENT, session_id="s1")
    assert (message.id, message.text) == ("m1", "hello")


async def test_a_task_that_is_sent_and_answered_again_has_one_transcript(state: State) -> None:
    app = App("clerk")

    @app.handler
    async def work(task: TaskContext) -> str:
        await task.history.append(task.message, ChatMessage.assistant("a note"))
        answer = await task.ask("Which pier?")
        return f"pier {answer.text}"

    async with serving(app, state) as service, http_client(timeout=60) as http:

        async def send(text: str, **fields: str) -> dict[str, Any]:
            parts = [{"text": text}]
            message = {"messageId": new_ref(), "role": "ROLE_USER", "parts": parts, **fields}
            headers = MODERN | {"Idempotency-Key": f"key of {text}"}
            url = f"{service.url}/message:send"
            answer = await http.post(url, json={"message": message}, headers=headers)
            assert answer.status_code == 200, answer.text
            task: dict[str, Any] = answer.json()["task"]
            return task

        first, again = [await send("go", contextId="c1") for _ in range(2)]
        assert first["id"] == again["id"]
        done = [await send("north", taskId=first["id"]) for _ in range(2)]
        assert [one["status"]["state"] for one in done] == ["TASK_STATE_COMPLETED"] * 2
    said = await state.history.get_messages(app.agent, session_id="c1")
    texts = [one.text for one in said]
    assert sorted(texts) == ["Which pier?", "a note", "go", "north", "pier north"]
