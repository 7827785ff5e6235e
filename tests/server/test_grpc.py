"""The same service over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

import holdfast
from holdfast import App, Reply, State, TaskContext
from holdfast.testing.postgres_server import free_port
from tests.server.running import example_app, said, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[State]:
    async with holdfast.open("memory:") as opened:
        yield opened


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


METHODS = ["GetTask", "SendMessage", "ListTasks", "SendStreamingMessage", "SubscribeToTask"]
NO_MESSAGES = {
    "no field": b"\xff\xff\xff\xff",
    "a text that is not UTF-8": b"\x0a\x02\xff\xfe",
    "a length beyond the end": b"\x0a\x7fabc",
    "a group that never ends": b"\x0b" * 200,
    "deeper than anybody reads": b"\x0a\x02" * 500,
}


async def _refused(call: Any) -> grpc.aio.AioRpcError:
    async with asyncio.timeout(60):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call if isinstance(call, Awaitable) else await anext(aiter(call))
    return caught.value


@pytest.mark.parametrize("method", METHODS)
async def test_bytes_that_are_no_message_are_refused_in_plain_words(
    memory: State, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    port, key = free_port(), (await memory.keys.create("ana")).text
    async with (
        serving(example_app(), memory, auth=True, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        kind = channel.unary_stream if "St" in method or "Sub" in method else channel.unary_unary
        send = kind(f"/lf.a2a.v1.A2AService/{method}")
        mine = [("authorization", f"Bearer {key}")]
        for what, sent in NO_MESSAGES.items():
            error = await _refused(send(sent, metadata=mine, wait_for_ready=True))
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, (what, error.details())
            reply_text = str(error.details())
            assert not any(word in reply_text for word in ("class", "Error", "protobuf", "pb2")), (
                reply_text
            )
        empty = channel.stream_unary(f"/lf.a2a.v1.A2AService/{method}")
        call = empty(metadata=mine)
        await call.done_writing()
        assert (await _refused(call)).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]


@pytest.mark.parametrize("method", METHODS)
async def test_a_message_that_never_comes_ends_the_call(memory: State, method: str) -> None:
    port, key = free_port(), (await memory.keys.create("ana")).text
    async with (
        serving(example_app(), memory, auth=True, grpc_port=port, body_seconds=0.2),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        mine = [("authorization", f"Bearer {key}")]
        silent = channel.stream_unary(f"/lf.a2a.v1.A2AService/{method}")
        call = silent(metadata=mine, wait_for_ready=True)
        assert (await _refused(call)).code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("method", ["GetTask", "SendStreamingMessage"])
async def test_calls_whose_message_has_not_come_count_for_their_key(
    memory: State, method: str
) -> None:
    port = free_port()
    ana, bob = [
        [("authorization", f"Bearer {(await memory.keys.create(who)).text}")]
        for who in ("ana", "bob")
    ]
    async with (
        serving(example_app(), memory, auth=True, grpc_port=port, key_requests=2),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        silent = channel.stream_unary(f"/lf.a2a.v1.A2AService/{method}")
        calls = [silent(metadata=ana, wait_for_ready=True) for _ in range(3)]
        done, waiting = await asyncio.wait(
            [asyncio.ensure_future(_refused(one)) for one in calls],
            return_when=asyncio.FIRST_COMPLETED,
            timeout=60,
        )
        assert [one.result().code() for one in done] == [grpc.StatusCode.RESOURCE_EXHAUSTED]
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        answer = await make(channel).SendMessage(said("say hi"), metadata=bob)
        assert answer.task.status.state == a2a.TASK_STATE_COMPLETED
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
