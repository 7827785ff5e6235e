"""The same service over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import App, Reply, State, TaskContext
from tests.server.running import example_app, free_port, said, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_grpc_serves_the_same_tasks_to_the_same_callers(state: State) -> None:
    port = free_port()
    ana, max_ = (await state.keys.create("ana")).text, (await state.keys.create("max")).text
    async with (
        serving(example_app(), state, auth=True, grpc_port=port) as service,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        del service
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub = make(channel)
        mine = [("authorization", f"Bearer {ana}"), ("idempotency-key", "k1")]
        ids = set()
        for _ in range(2):
            answer = await stub.SendMessage(said("say hi"), metadata=mine, wait_for_ready=True)
            assert answer.task.status.message.parts[0].text == "done: hi"
            ids.add(answer.task.id)
        assert len(ids) == 1
        [task_id] = ids
        request = a2a.GetTaskRequest(id=task_id)
        assert (await stub.GetTask(request, metadata=mine)).id == task_id

        streamed = [
            one async for one in stub.SendStreamingMessage(said("stream 2"), metadata=mine[:1])
        ]
        assert streamed[-1].status_update.status.state == a2a.TASK_STATE_COMPLETED

        for metadata, code in (
            ([], grpc.StatusCode.UNAUTHENTICATED),
            ([("authorization", "Bearer hf_mfrw2zi_x")], grpc.StatusCode.UNAUTHENTICATED),
            ([("authorization", f"Bearer {max_}")], grpc.StatusCode.NOT_FOUND),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.GetTask(request, metadata=metadata)
            assert caught.value.code() is code
            watched = stub.SubscribeToTask(
                a2a.SubscribeToTaskRequest(id=task_id), metadata=metadata
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await anext(aiter(watched))
            assert caught.value.code() is code


async def test_a_version_that_is_not_served_is_refused(state: State) -> None:
    port = free_port()
    async with (
        serving(example_app(), state, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub = make(channel)
        for known in ([], [("a2a-version", "1.0")], [("a2a-version", "1.1.2")]):
            answer = await stub.SendMessage(said("say hi"), metadata=known, wait_for_ready=True)
            assert answer.task.status.state == a2a.TASK_STATE_COMPLETED
        for version in ("99.0", "0.3", "2", "one", "1.0.0.0", "10"):
            unknown = [("a2a-version", version)]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.SendMessage(said("say hi"), metadata=unknown)
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await anext(aiter(stub.SendStreamingMessage(said("say hi"), metadata=unknown)))
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert (await state.tasks.list(count=True)).total == 3


async def test_a_reply_is_a_message_over_grpc_too(state: State) -> None:
    app = App("chat")

    @app.handler
    async def chat(task: TaskContext) -> Reply:
        return task.reply(f"you said {task.message.text}")

    port = free_port()
    async with (
        serving(app, state, grpc_port=port, reply_seconds=60.0),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub = make(channel)
        answer = await stub.SendMessage(said("hello"), wait_for_ready=True)
        assert answer.message.parts[0].text == "you said hello"
        [event] = [one async for one in stub.SendStreamingMessage(said("again"))]
        assert event.message.parts[0].text == "you said again"


async def test_a_call_without_a_key_is_refused_before_its_message_comes(state: State) -> None:
    port = free_port()
    async with (
        serving(example_app(), state, auth=True, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        silent = channel.stream_unary("/lf.a2a.v1.A2AService/GetTask")(wait_for_ready=True)
        async with asyncio.timeout(60):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await silent
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
