"""Calls over gRPC, and of services behind the gate such as MCP, are spans of the caller's trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc
from starlette.responses import JSONResponse

import holdfast
from holdfast import State
from holdfast.server.gated import GatedService
from holdfast.server.options import ServiceOptions
from holdfast.testing.postgres_server import free_port
from tests.server.running import example_app, http_client, said, serving
from tests.telemetry.spans import Kept

pytestmark = pytest.mark.asyncio(loop_scope="session")
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
SEND = "lf.a2a.v1.A2AService/SendMessage"


def _of(kept: Kept, name: str) -> list[Any]:
    return [span for span in kept.spans if span.name == name]


async def test_a_grpc_call_is_the_parent_of_its_task() -> None:
    kept, port = Kept(), free_port()
    async with (
        holdfast.open("memory:", telemetry=kept.telemetry) as state,
        serving(example_app(), state, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub = make(channel)
        header = [("traceparent", PARENT)]
        await stub.SendMessage(said("say hi"), metadata=header, wait_for_ready=True)
        events = [one async for one in stub.SendStreamingMessage(said("stream 2"), metadata=header)]
        assert events[-1].status_update.status.state == a2a.TASK_STATE_COMPLETED
    [call] = _of(kept, SEND)
    [streamed] = _of(kept, SEND.replace("Send", "SendStreaming"))
    for span in (call, streamed):
        assert f"{span.context.trace_id:032x}" == TRACE
        assert f"{span.parent.span_id:016x}" == SPAN
        assert span.attributes["rpc.system"] == "grpc"
    submits = {one.parent.span_id for one in _of(kept, "submit tasks")}
    assert submits == {call.context.span_id, streamed.context.span_id}


async def test_a_grpc_method_or_header_that_a_client_made_up_names_no_span() -> None:
    kept, port = Kept(), free_port()
    async with (
        holdfast.open("memory:", telemetry=kept.telemetry) as state,
        serving(example_app(), state, auth=True, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        made_up = channel.unary_unary("/made.Up/Name")
        nonsense = [("traceparent", "nonsense")]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await made_up(b"", metadata=nonsense, wait_for_ready=True)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    [refused] = _of(kept, "gRPC")
    assert refused.attributes["rpc.method"] == "_OTHER"
    assert refused.parent is None
    assert not [span for span in kept.spans if "made" in span.name]


class _Counting:
    """An app that makes one call to a store."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._state.history.count_messages("a", session_id="s1")
        await JSONResponse({})(scope, receive, send)


async def test_a_request_to_a_gated_app_is_a_span_of_the_callers_trace() -> None:
    kept = Kept()
    async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
        service = GatedService(
            state, ServiceOptions(port=0, auth=False), {"/mcp": _Counting(state)}
        )
        running = asyncio.create_task(service.run())
        async with http_client(base_url=service.url, timeout=60) as http:
            answer = await http.post("/mcp", json={}, headers={"traceparent": PARENT})
        assert answer.status_code == 200
        service.stop()
        await running
    [request] = _of(kept, "POST")
    assert f"{request.context.trace_id:032x}" == TRACE
    assert [one.parent.span_id for one in _of(kept, "count_messages history")] == [
        request.context.span_id
    ]
