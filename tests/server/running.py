"""A service in the test's own process, over real HTTP on a free loopback port."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a

from holdfast import App, State, TaskContext
from holdfast.server.options import ServiceOptions
from holdfast.server.service import Service

MODERN = {"A2A-Version": "1.0"}
_TLS = ssl.create_default_context()


def http_client(**how: Any) -> httpx.AsyncClient:
    """A client; all share one TLS context, which takes longer to make than most tests."""
    return httpx.AsyncClient(verify=_TLS, **how)


def example_app(**gates: asyncio.Event) -> App:
    """An agent that does what the first word of its message says."""
    app = App("tester", description="does what the message says")

    @app.handler(backoff_seconds=0.01, max_attempts=2)
    async def work(task: TaskContext) -> str | None:
        """Do what the message says."""
        word, _, rest = task.message.text.partition(" ")
        if word == "ask":
            answer = await task.ask("which one?")
            return f"you said {answer.text}"
        if word == "wait":
            await gates[rest].wait()
        if word == "stream":
            for number in range(int(rest)):
                await task.artifact("lines.txt", f"line {number}\n", append=True)
                await task.say(f"wrote {number}", name=f"say{number}")
                if gate := gates.get(f"line{number}"):
                    await gate.wait()
        if word == "file":
            await task.artifact("data.bin", b"x" * int(rest), media_type="application/x-test")
        if word == "fail":
            raise RuntimeError("the password is hunter2")
        return f"done: {rest}"

    return app


@asynccontextmanager
async def serving(app: App, state: State, **how: Any) -> AsyncIterator[Service]:
    """A service that runs until the block ends."""
    poll = how.pop("delivery_poll_seconds", 0.05)
    workers = how.pop("workers", 4)
    options = ServiceOptions(**({"port": 0, "auth": False, "drain_seconds": 5.0} | how))
    service = Service(app, state, options, workers=workers, delivery_poll_seconds=poll)
    run = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        service.stop()
        async with asyncio.timeout(60):
            await run


@asynccontextmanager
async def talking(
    service: Service, *, key: str = "", binding: str = "JSONRPC", streaming: bool = True
) -> AsyncIterator[Client]:
    """The official client, on the service's own card."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with http_client(headers=headers, timeout=60) as http:
        factory = ClientFactory(
            ClientConfig(
                httpx_client=http, supported_protocol_bindings=[binding], streaming=streaming
            )
        )
        yield await factory.create_from_url(service.url)


def said(text: str, **fields: Any) -> a2a.SendMessageRequest:
    """A message of a user."""
    number = fields.pop("message_id", None) or f"m-{id(fields)}-{text}"
    configuration = fields.pop("configuration", None)
    metadata = fields.pop("metadata", None)
    return a2a.SendMessageRequest(
        message=a2a.Message(
            message_id=number, role=a2a.ROLE_USER, parts=[a2a.Part(text=text)], **fields
        ),
        configuration=configuration,
        metadata=metadata,
    )


async def sent(client: Client, request: a2a.SendMessageRequest) -> list[a2a.StreamResponse]:
    """All that comes back for a message."""
    return [event async for event in client.send_message(request)]
